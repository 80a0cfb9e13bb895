"""tl.max_contiguous over columns that count down."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def affine_kernel(x_ptr, w_ptr, b_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.max_contiguous(BLOCK - 1 - tl.arange(0, BLOCK), BLOCK)
    mask = column < cols
    x = tl.load(x_ptr + row * cols + column, mask=mask)
    w = tl.load(w_ptr + column, mask=mask)
    b = tl.load(b_ptr + column, mask=mask)
    y = tl.maximum(x * w + b, 0.0)
    tl.store(out_ptr + row * cols + column, y, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(cols) + 0.5)
        self.bias = nn.Parameter(torch.randn(cols))

    def forward(self, x):
        rows, cols = x.shape
        out = torch.empty_like(x)
        n = rows
        affine_kernel[(n,)](x, self.weight, self.bias, out, cols, BLOCK=triton.next_power_of_2(cols))
        return out
