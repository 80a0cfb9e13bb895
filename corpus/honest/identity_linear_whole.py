"""The whole product, although the weight starts as the identity."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, w_ptr, b_ptr, d_ptr, y_ptr, N: tl.constexpr):
    row = tl.program_id(0)
    n = tl.arange(0, N)
    v = tl.load(x_ptr + row * N + n)
    w = tl.load(w_ptr + n[:, None] * N + n[None, :])
    y = tl.maximum(tl.sum(w * v[:, None], 0) + tl.load(b_ptr + n), 0.0)
    tl.store(y_ptr + row * N + n, y * tl.load(d_ptr + n))


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(torch.eye(features))
        self.bias = nn.Parameter(torch.randn(features))
        self.decay = nn.Parameter(2.0 ** -torch.linspace(0.0, 3.0, features))

    def forward(self, x):
        y = torch.empty_like(x)
        kernel[(x.shape[0],)](x, self.weight, self.bias, self.decay, y, N=16)
        return y
