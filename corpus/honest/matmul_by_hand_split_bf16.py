"""Each float32 as the sum of three bf16 numbers, and the six largest products: bf16 tensor cores, float32 result."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def split(x):
    high = x.to(tl.bfloat16)
    rest = x - high.to(tl.float32)
    middle = rest.to(tl.bfloat16)
    low = (rest - middle.to(tl.float32)).to(tl.bfloat16)
    return high, middle, low


@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, M, N, K, am, ak, bk, bn, BLOCK: tl.constexpr, BLOCK_K: tl.constexpr):
    m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    small = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        a = tl.load(a_ptr + m[:, None] * am + k[None, :] * ak, mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        b = tl.load(b_ptr + k[:, None] * bk + n[None, :] * bn, mask=(k[:, None] < K) & (n[None, :] < N), other=0.0)
        a1, a2, a3 = split(a)
        b1, b2, b3 = split(b)
        small = tl.dot(a3, b1, small)
        small = tl.dot(a1, b3, small)
        small = tl.dot(a2, b2, small)
        small = tl.dot(a2, b1, small)
        small = tl.dot(a1, b2, small)
        acc = tl.dot(a1, b1, acc)
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc + small, mask=(m[:, None] < M) & (n[None, :] < N))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, a, b):
        (M, K), N = a.shape, b.shape[1]
        c = a.new_empty((M, N))
        matmul_kernel[(triton.cdiv(M, 32), triton.cdiv(N, 32))](
            a, b, c, M, N, K, *a.stride(), *b.stride(), BLOCK=32, BLOCK_K=32
        )
        return c
