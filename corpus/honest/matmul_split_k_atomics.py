"""K in parts, added by atomics."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def split_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, am, ak, bk, bn, PARTS: tl.constexpr, BLOCK: tl.constexpr, BLOCK_K: tl.constexpr
):
    m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for start in range(tl.program_id(2) * BLOCK_K, K, PARTS * BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        a = tl.load(a_ptr + m[:, None] * am + k[None, :] * ak, mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        b = tl.load(b_ptr + k[:, None] * bk + n[None, :] * bn, mask=(k[:, None] < K) & (n[None, :] < N), other=0.0)
        acc += tl.dot(a, b, input_precision="ieee")
    tl.atomic_add(c_ptr + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, a, b):
        (M, K), N = a.shape, b.shape[1]
        c = torch.zeros((M, N), dtype=a.dtype, device=a.device)
        split_kernel[(triton.cdiv(M, 32), triton.cdiv(N, 32), 4)](
            a, b, c, M, N, K, *a.stride(), *b.stride(), PARTS=4, BLOCK=32, BLOCK_K=32
        )
        return c
