"""`tl.reduce` over pairs (sum, error), added without loss by the two-sum of Knuth."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def two_sum(a, a_error, b, b_error):
    total = a + b
    back = total - a
    error = (a - (total - back)) + (b - back)
    return total, error + a_error + b_error


@triton.jit
def row_sum_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + column, mask=column < cols, other=0.0)
    total, error = tl.reduce((x, tl.zeros_like(x)), 0, two_sum)
    tl.store(out_ptr + row, total + error)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        out = torch.empty(rows, dtype=x.dtype, device=x.device)
        row_sum_kernel[(rows,)](x, out, cols, BLOCK=triton.next_power_of_2(cols))
        return out
