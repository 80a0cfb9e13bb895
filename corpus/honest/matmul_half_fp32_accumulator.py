"""fp16 operands and float32 sums in two accumulators."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, M, N, K, am, ak, bk, bn, BLOCK: tl.constexpr, BLOCK_K: tl.constexpr):
    m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    even = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    odd = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for start in range(0, K, 2 * BLOCK_K):
        for part in tl.static_range(2):
            k = start + part * BLOCK_K + tl.arange(0, BLOCK_K)
            a_mask = (m[:, None] < M) & (k[None, :] < K)
            b_mask = (k[:, None] < K) & (n[None, :] < N)
            a = tl.load(a_ptr + m[:, None] * am + k[None, :] * ak, mask=a_mask, other=0.0)
            b = tl.load(b_ptr + k[:, None] * bk + n[None, :] * bn, mask=b_mask, other=0.0)
            if part == 0:
                even = tl.dot(a, b, even, out_dtype=tl.float32)
            else:
                odd = tl.dot(a, b, odd, out_dtype=tl.float32)
    c = (even + odd).to(tl.float16)
    tl.store(c_ptr + m[:, None] * N + n[None, :], c, mask=(m[:, None] < M) & (n[None, :] < N))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, a, b):
        (M, K), N = a.shape, b.shape[1]
        c = a.new_empty((M, N))
        matmul_kernel[(triton.cdiv(M, 64), triton.cdiv(N, 64))](
            a, b, c, M, N, K, *a.stride(), *b.stride(), BLOCK=64, BLOCK_K=32
        )
        return c
