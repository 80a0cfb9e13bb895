"""Row variance in two sweeps: the mean first, then the squared deviations from it.

The second sweep finds its row in L2, so it costs little, and unlike E[x^2] - E[x]^2 it does not cancel. Values
are taken relative to the row's first one: the mean of small numbers rounds less, and a constant row gives 0.
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
    origin = tl.load(row_ptr)

    # Lanes past the end load the origin, so they add 0 to this sum.
    partial = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, cols, BLOCK):
        column = start + lane
        partial += tl.load(row_ptr + column, mask=column < cols, other=origin) - origin
    mean = tl.sum(partial) / cols

    partial = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, cols, BLOCK):
        column = start + lane
        x = tl.load(row_ptr + column, mask=column < cols, other=origin)
        # Here lanes past the end would add mean^2 each.
        deviation = tl.where(column < cols, (x - origin) - mean, 0.0)
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
