"""A `while` loop that ends."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_sum_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    start = 0
    while start < cols:
        column = start + tl.arange(0, BLOCK)
        if start + BLOCK <= cols:
            total += tl.load(x_ptr + row * cols + column)
        else:
            total += tl.load(x_ptr + row * cols + column, mask=column < cols, other=0.0)
        start += BLOCK
    tl.store(out_ptr + row, tl.sum(total))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        out = torch.empty(rows, dtype=x.dtype, device=x.device)
        row_sum_kernel[(rows,)](x, out, cols, BLOCK=256)
        return out
