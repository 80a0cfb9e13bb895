"""Sums as a matrix product with ones, on the units that multiply matrices."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_sum_kernel(x_ptr, out_ptr, rows, cols, BLOCK_ROWS: tl.constexpr, BLOCK_COLS: tl.constexpr):
    row = tl.program_id(0) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)
    ones = tl.full((BLOCK_COLS, 16), 1.0, dtype=tl.float32)
    acc = tl.zeros((BLOCK_ROWS, 16), dtype=tl.float32)
    for start in range(0, cols, BLOCK_COLS):
        column = start + tl.arange(0, BLOCK_COLS)
        mask = (row[:, None] < rows) & (column[None, :] < cols)
        x = tl.load(x_ptr + row[:, None] * cols + column[None, :], mask=mask, other=0.0)
        acc = tl.dot(x, ones, acc, input_precision="ieee")
    tl.store(out_ptr + row, tl.max(acc, axis=1), mask=row < rows)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        out = x.new_empty(rows)
        row_sum_kernel[(triton.cdiv(rows, 16),)](x, out, rows, cols, BLOCK_ROWS=16, BLOCK_COLS=64)
        return out
