"""Rank-one updates instead of `tl.dot`."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, M, N, K, am, ak, bk, bn, BLOCK: tl.constexpr):
    m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for k in range(K):
        a = tl.load(a_ptr + m * am + k * ak, mask=m < M, other=0.0)
        b = tl.load(b_ptr + k * bk + n * bn, mask=n < N, other=0.0)
        acc = tl.fma(tl.broadcast_to(a[:, None], (BLOCK, BLOCK)), tl.broadcast_to(b[None, :], (BLOCK, BLOCK)), acc)
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, a, b):
        (M, K), N = a.shape, b.shape[1]
        c = a.new_empty((M, N))
        matmul_kernel[(triton.cdiv(M, 64), triton.cdiv(N, 64))](a, b, c, M, N, K, *a.stride(), *b.stride(), BLOCK=64)
        return c
