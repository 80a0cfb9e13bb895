"""A kernel that only moves data, for a reference that only moves data."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def triangle_kernel(x_ptr, out_ptr, n, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + column, mask=(column < cols) & (column <= row), other=0.0)
    tl.store(out_ptr + (n - 1 - row) * cols + column, x, mask=column < cols)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        x = x.contiguous()
        n, cols = x.shape
        out = torch.empty_like(x)
        triangle_kernel[(n,)](x, out, n, cols, BLOCK=triton.next_power_of_2(cols))
        return out
