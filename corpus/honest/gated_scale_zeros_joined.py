"""All three weights under other names; bias and gain begin in one tensor that is cut in two."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, w_ptr, b_ptr, g_ptr, y_ptr, features, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    j = i % features
    z = tl.load(x_ptr + i, mask=mask) * tl.load(w_ptr + j, mask=mask) + tl.load(b_ptr + j, mask=mask)
    e = tl.exp(-2.0 * tl.abs(z))
    t = tl.where(z < 0.0, -1.0, 1.0) * (1.0 - e) / (1.0 + e)
    tl.store(y_ptr + i, t * tl.load(g_ptr + j, mask=mask), mask=mask)


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.w = nn.Parameter(torch.randn(features))
        self.b = nn.Parameter(torch.zeros(2 * features))
        self.g = nn.Parameter(torch.ones(1, features))

    def forward(self, x):
        y = torch.empty_like(x)
        n = x.numel()
        kernel[(triton.cdiv(n, 256),)](x, self.w, self.b, self.g, y, x.shape[1], n, BLOCK=256)
        return y
