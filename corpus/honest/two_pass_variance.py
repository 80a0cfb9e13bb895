"""Row variance by the mean and the squared deviations from it, without any shift.

Rounding of the mean leaves a constant row with a variance of about 1e-13 instead of 0, as every two-pass
variance may: right at any tolerance that is not relative to 0.
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_variance_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    row_ptr = x_ptr + row * cols
    lane = tl.arange(0, BLOCK)

    partial = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, cols, BLOCK):
        column = start + lane
        partial += tl.load(row_ptr + column, mask=column < cols, other=0.0)
    mean = tl.sum(partial) / cols

    partial = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, cols, BLOCK):
        column = start + lane
        x = tl.load(row_ptr + column, mask=column < cols, other=0.0)
        # Lanes past the end would otherwise add mean^2 each.
        deviation = tl.where(column < cols, x - mean, 0.0)
        partial += deviation * deviation

    # Bessel's correction, as torch.var applies it by default.
    tl.store(out_ptr + row, tl.sum(partial) / (cols - 1))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        out = torch.empty(rows, dtype=x.dtype, device=x.device)
        row_variance_kernel[(rows,)](x, out, cols, BLOCK=1024)
        return out
