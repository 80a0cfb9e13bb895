"""Block pointers: bounds are checked by the load."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_sum_kernel(x_ptr, out_ptr, rows, cols, stride, BLOCK_ROWS: tl.constexpr, BLOCK_COLS: tl.constexpr):
    first = tl.program_id(0) * BLOCK_ROWS
    x = tl.make_block_ptr(x_ptr, (rows, cols), (stride, 1), (first, 0), (BLOCK_ROWS, BLOCK_COLS), (1, 0))
    total = tl.zeros((BLOCK_ROWS,), dtype=tl.float32)
    for _ in range(0, cols, BLOCK_COLS):
        total += tl.sum(tl.load(x, boundary_check=(0, 1), padding_option="zero"), axis=1)
        x = tl.advance(x, (0, BLOCK_COLS))
    out = tl.make_block_ptr(out_ptr, (rows,), (1,), (first,), (BLOCK_ROWS,), (0,))
    tl.store(out, total, boundary_check=(0,))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        out = x.new_empty((rows,))
        row_sum_kernel[(triton.cdiv(rows, 8),)](x, out, rows, cols, x.stride(0), BLOCK_ROWS=8, BLOCK_COLS=128)
        return out
