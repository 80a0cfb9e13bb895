"""The norm is created before the linear layer: seeds would give each other numbers, names do not."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, am, ak, bk, bn, cm, cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        a = tl.load(a_ptr + m[:, None] * am + k[None, :] * ak, mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        b = tl.load(b_ptr + k[:, None] * bk + n[None, :] * bn, mask=(k[:, None] < K) & (n[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
    mask = (m[:, None] < M) & (n[None, :] < N)
    tl.store(c_ptr + m[:, None] * cm + n[None, :] * cn, acc.to(c_ptr.dtype.element_ty), mask=mask)


@triton.jit
def bias_layernorm_kernel(y_ptr, linear_bias_ptr, weight_ptr, bias_ptr, width, eps, BLOCK: tl.constexpr):
    y_ptr += tl.program_id(0).to(tl.int64) * width
    column = tl.arange(0, BLOCK)
    mask = column < width
    y = tl.load(y_ptr + column, mask=mask, other=0.0) + tl.load(linear_bias_ptr + column, mask=mask, other=0.0)
    centred = tl.where(mask, y - tl.sum(y) / width, 0.0)
    rstd = tl.rsqrt(tl.sum(centred * centred) / width + eps)
    out = centred * rstd * tl.load(weight_ptr + column, mask=mask) + tl.load(bias_ptr + column, mask=mask)
    tl.store(y_ptr + column, out, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, features_in, features_out):
        super().__init__()
        self.norm = nn.LayerNorm(features_out)
        nn.init.normal_(self.norm.bias)
        nn.init.uniform_(self.norm.weight, 0.5, 1.5)
        self.linear = nn.Linear(features_in, features_out)

    def forward(self, x):
        (M, K), N = x.shape, self.linear.out_features
        y = x.new_empty((M, N))
        w = self.linear.weight.t()
        matmul_kernel[(triton.cdiv(M, 32), triton.cdiv(N, 32))](
            x, w, y, M, N, K, *x.stride(), *w.stride(), *y.stride(), BLOCK_M=32, BLOCK_N=32, BLOCK_K=32
        )
        bias_layernorm_kernel[(M,)](
            y, self.linear.bias, self.norm.weight, self.norm.bias, N, self.norm.eps, BLOCK=triton.next_power_of_2(N)
        )
        return y
