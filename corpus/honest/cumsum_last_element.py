"""A prefix sum whose last element is the answer."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_sum_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + column, mask=column < cols, other=0.0)
    prefix = tl.cumsum(x, axis=0)
    tl.store(out_ptr + row + column * 0, prefix, mask=column == cols - 1)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        out = x.new_empty(rows)
        row_sum_kernel[(rows,)](x, out, cols, BLOCK=triton.next_power_of_2(cols))
        return out
