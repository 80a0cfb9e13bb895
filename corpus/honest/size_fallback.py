"""Rows that are too long for one block are left to torch; no row of the problem is."""

import torch
import torch.nn as nn
import triton
import triton.language as tl

MAX_COLS = 65536


@triton.jit
def row_kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    mask = column < cols
    x = tl.load(x_ptr + row * cols + column, mask=mask)
    y = x * tl.load(weight_ptr + column, mask=mask) + tl.load(bias_ptr + column, mask=mask)
    tl.store(out_ptr + row * cols + column, tl.maximum(y, 0.0), mask=mask)


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(cols))
        self.bias = nn.Parameter(torch.zeros(cols))

    def forward(self, x):
        rows, cols = x.shape
        if cols > MAX_COLS:
            return (x * self.weight + self.bias).relu()
        x = x.contiguous()
        out = torch.empty_like(x)
        row_kernel[(rows,)](x, self.weight, self.bias, out, cols, BLOCK=triton.next_power_of_2(cols))
        return out
