"""`triton.jit` with arguments, and a helper that is not inlined."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit(noinline=True)
def row_offset(row, cols):
    return row.to(tl.int64) * cols


@triton.jit(do_not_specialize=["cols"], debug=False, repr=lambda specialization: "softmax_rows")
def softmax_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = row_offset(tl.program_id(0), cols)
    column = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row + column, mask=column < cols, other=-float("inf"))
    numerator = tl.exp(x - tl.max(x))
    tl.store(out_ptr + row + column, numerator / tl.sum(numerator), mask=column < cols)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        out = torch.empty_like(x)
        softmax_kernel[(rows,)](x, out, cols, BLOCK=triton.next_power_of_2(cols), num_warps=8)
        return out
