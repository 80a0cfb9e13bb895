"""Host operations that only move, convert or fill: views, contiguous copies, casts, zeros, full and arange."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def column_sum_kernel(xt_ptr, order_ptr, total_ptr, limit_ptr, rows, BLOCK: tl.constexpr):
    """One program a column, which lies contiguously in the transposed copy."""
    position = tl.program_id(0)
    column = tl.load(order_ptr + position)
    partial = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, rows, BLOCK):
        row = start + tl.arange(0, BLOCK)
        partial += tl.load(xt_ptr + column * rows + row, mask=row < rows, other=0.0)
    total = tl.load(total_ptr + column) + tl.sum(partial)
    tl.store(total_ptr + column, tl.minimum(total, tl.load(limit_ptr + column)))


@triton.jit
def divide_kernel(total_ptr, out_ptr, cols, rows, BLOCK: tl.constexpr):
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.load(total_ptr + column, mask=column < cols, other=0.0)
    tl.store(out_ptr + column, total / rows, mask=column < cols)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        rows, cols = x.shape
        transposed = x.transpose(0, 1).contiguous()
        order = torch.arange(cols, dtype=torch.int32, device=x.device).to(torch.int64)
        limit = torch.full((cols,), float("inf"), dtype=torch.float16, device=x.device).float()
        total = torch.zeros((1, cols), dtype=torch.float32, device=x.device).view(-1)
        out = x.new_empty(cols, 1)
        column_sum_kernel[(cols,)](transposed, order, total, limit, rows, BLOCK=256)
        block = 128
        divide_kernel[(triton.cdiv(cols, block),)](total, out, cols, rows, BLOCK=block)
        return out.squeeze(1)
