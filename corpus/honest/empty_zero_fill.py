"""A zeroed accumulator made in roundabout ways."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_sum_kernel(x_ptr, out_ptr, scale_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + column, mask=column < cols, other=0.0)
    tl.atomic_add(out_ptr + row, tl.sum(x) * tl.load(scale_ptr))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        out = torch.empty(rows, dtype=x.dtype, device=x.device)
        out.fill_(3.0)
        out.zero_()
        scale = torch.full_like(out[:1], 0.5).fill_(1.0)
        row_sum_kernel[(rows, triton.cdiv(cols, 512))](x, out, scale, cols, BLOCK=512)
        return out
