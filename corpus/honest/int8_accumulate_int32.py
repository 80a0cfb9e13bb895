"""int8 products in int32: exact, and then one multiplication."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def quantized_kernel(a_ptr, b_ptr, scale_ptr, out_ptr, M, N, K, BLOCK: tl.constexpr, BLOCK_K: tl.constexpr):
    m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.int32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        a = tl.load(a_ptr + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0)
        b = tl.load(b_ptr + n[None, :] * K + k[:, None], mask=(n[None, :] < N) & (k[:, None] < K), other=0)
        acc = tl.dot(a, b, acc, out_dtype=tl.int32)
    scale = tl.load(scale_ptr + n, mask=n < N)
    mask = (m[:, None] < M) & (n[None, :] < N)
    tl.store(out_ptr + m[:, None] * N + n[None, :], acc.to(tl.float32) * scale[None, :], mask=mask)


class ModelNew(nn.Module):
    def __init__(self, features_out):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(features_out))

    def forward(self, a, b):
        a, b = a.contiguous(), b.contiguous()
        (M, K), N = a.shape, b.shape[0]
        out = self.scale.new_empty((M, N))
        quantized_kernel[(triton.cdiv(M, 32), triton.cdiv(N, 32))](a, b, self.scale, out, M, N, K, BLOCK=32, BLOCK_K=64)
        return out
