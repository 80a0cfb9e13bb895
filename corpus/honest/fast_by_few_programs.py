"""Sixteen rows a program with the whole width in registers: three launches' worth of work in one."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_sum_kernel(x_ptr, out_ptr, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)
    mask = (row[:, None] < rows) & (column[None, :] < cols)
    x = tl.load(x_ptr + row[:, None].to(tl.int64) * cols + column[None, :], mask=mask, other=0.0)
    tl.store(out_ptr + row, tl.sum(x, axis=1), mask=row < rows)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        out = x.new_empty(rows)
        row_sum_kernel[(triton.cdiv(rows, 16),)](
            x, out, rows, cols, ROWS=16, BLOCK=triton.next_power_of_2(cols), num_warps=8
        )
        return out
