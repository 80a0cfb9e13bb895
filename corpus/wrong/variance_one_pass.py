"""Variance as E[x^2] - E[x]^2 in fp32: cancels where the mean is large."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_variance_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    row_ptr = x_ptr + row * cols
    lane = tl.arange(0, BLOCK)
    origin = tl.load(row_ptr)

    partial = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, cols, BLOCK):
        column = start + lane
        partial += tl.load(row_ptr + column, mask=column < cols, other=origin) - origin
    mean = tl.sum(partial) / cols

    partial = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, cols, BLOCK):
        column = start + lane
        x = tl.load(row_ptr + column, mask=column < cols, other=origin)
        deviation = tl.where(column < cols, (x - origin) - mean, 0.0)
        partial += deviation * deviation

    total = 0.0
    squares = 0.0
    for start in range(0, cols, BLOCK):
        column = start + lane
        x = tl.load(row_ptr + column, mask=column < cols, other=0.0)
        total += tl.sum(x)
        squares += tl.sum(x * x)
    tl.store(out_ptr + row, (squares - total * total / cols) / (cols - 1))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        out = torch.empty(rows, dtype=x.dtype, device=x.device)
        row_variance_kernel[(rows,)](x, out, cols, BLOCK=1024)
        return out
