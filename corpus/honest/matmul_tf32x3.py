"""Three tf32 products a tile: as exact as float32, on tensor cores."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, am, ak, bk, bn, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    pid = tl.program_id(0)
    tile_m, tile_n = tl.swizzle2d(
        pid // tl.cdiv(N, BLOCK_N), pid % tl.cdiv(N, BLOCK_N), tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N), 4
    )
    m = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in tl.range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        a = tl.load(a_ptr + m[:, None] * am + k[None, :] * ak, mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        b = tl.load(b_ptr + k[:, None] * bk + n[None, :] * bn, mask=(k[:, None] < K) & (n[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc, input_precision="tf32x3")
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, a, b):
        (M, K), N = a.shape, b.shape[1]
        c = a.new_empty((M, N))
        matmul_kernel[(triton.cdiv(M, 32) * triton.cdiv(N, 32),)](
            a, b, c, M, N, K, *a.stride(), *b.stride(), BLOCK_M=32, BLOCK_N=32, BLOCK_K=32
        )
        return c
