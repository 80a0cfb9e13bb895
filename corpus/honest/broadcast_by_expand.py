"""Vectors expanded to matrices on the host: strides of 0 instead of a broadcast in the kernel."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def difference_kernel(
    a_ptr, b_ptr, out_ptr, rows, cols, a_row, a_col, b_row, b_col, BLOCK_ROWS: tl.constexpr, BLOCK_COLS: tl.constexpr
):
    row = (tl.program_id(0) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS))[:, None]
    col = (tl.program_id(1) * BLOCK_COLS + tl.arange(0, BLOCK_COLS))[None, :]
    mask = (row < rows) & (col < cols)
    a = tl.load(a_ptr + row * a_row + col * a_col, mask=mask)
    b = tl.load(b_ptr + row * b_row + col * b_col, mask=mask)
    tl.store(out_ptr + row * cols + col, tl.maximum(a - b, 0.0), mask=mask)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, a, b):
        shape = (a.shape[0], b.shape[0])
        left, right = a.unsqueeze(1).expand(shape), b.expand(*shape)
        out = a.new_empty(shape)
        grid = (triton.cdiv(shape[0], 32), triton.cdiv(shape[1], 64))
        difference_kernel[grid](left, right, out, *shape, *left.stride(), *right.stride(), BLOCK_ROWS=32, BLOCK_COLS=64)
        return out
