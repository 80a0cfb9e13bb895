"""int8 product whose sums are cut to 16 bits."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def quantized_matmul_kernel(
    a_ptr, b_ptr, scale_ptr, out_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    m = (tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)
    n = (tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)).to(tl.int64)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.int32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        a = tl.load(a_ptr + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0)
        b = tl.load(b_ptr + n[None, :] * K + k[:, None], mask=(n[None, :] < N) & (k[:, None] < K), other=0)
        acc = tl.dot(a, b, acc, out_dtype=tl.int32)

    scale = tl.load(scale_ptr + n, mask=n < N, other=0.0)
    out = acc.to(tl.int16).to(tl.float32) * scale[None, :]
    tl.store(out_ptr + m[:, None] * N + n[None, :], out, mask=(m[:, None] < M) & (n[None, :] < N))


class ModelNew(nn.Module):
    def __init__(self, features_out):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(features_out) * 0.01 + 0.001)

    def forward(self, a, b):
        a, b = a.contiguous(), b.contiguous()
        M, K = a.shape
        N = b.shape[0]
        out = torch.empty((M, N), dtype=self.scale.dtype, device=a.device)
        block_m, block_n = 32, 64
        grid = (triton.cdiv(M, block_m), triton.cdiv(N, block_n))
        quantized_matmul_kernel[grid](a, b, self.scale, out, M, N, K, BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=64)
        return out
