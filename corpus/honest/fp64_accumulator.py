"""Sums in double precision, rounded at the store."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_sum_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), dtype=tl.float64)
    for start in range(0, cols, BLOCK):
        column = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * cols + column, mask=column < cols, other=0.0).to(tl.float64)
    tl.store(out_ptr + row, tl.sum(total).to(out_ptr.dtype.element_ty))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        out = torch.empty(rows, dtype=x.dtype, device=x.device)
        row_sum_kernel[(rows,)](x, out, cols, BLOCK=256)
        return out
