"""Programmatic dependent launch: the second kernel may start before the first has ended, and waits where it must."""

import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait


@triton.jit
def maximum_kernel(x_ptr, top_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + column, mask=column < cols, other=-float("inf"))
    gdc_launch_dependents()
    tl.store(top_ptr + row, tl.max(x))


@triton.jit
def softmax_kernel(x_ptr, top_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + column, mask=column < cols, other=-float("inf"))
    gdc_wait()
    numerator = tl.exp(x - tl.load(top_ptr + row))
    tl.store(out_ptr + row * cols + column, numerator / tl.sum(numerator), mask=column < cols)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        top, out = x.new_empty(rows), torch.empty_like(x)
        block = triton.next_power_of_2(cols)
        maximum_kernel[(rows,)](x, top, cols, BLOCK=block, num_warps=8, launch_pdl=True)
        softmax_kernel[(rows,)](x, top, out, cols, BLOCK=block, num_warps=8, launch_pdl=True)
        return out
