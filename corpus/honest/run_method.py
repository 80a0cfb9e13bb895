"""Launches through `kernel.run` and through a bound launcher kept in a variable, with launch options set."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_max_kernel(x_ptr, maximum_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + column, mask=column < cols, other=-float("inf"))
    tl.store(maximum_ptr + row, tl.max(x))


@triton.jit
def normalise_kernel(x_ptr, maximum_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    mask = column < cols
    x = tl.load(x_ptr + row * cols + column, mask=mask, other=-float("inf"))
    numerator = tl.exp(x - tl.load(maximum_ptr + row))
    tl.store(out_ptr + row * cols + column, numerator / tl.sum(numerator), mask=mask)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        block = triton.next_power_of_2(cols)
        maximum = torch.empty(rows, dtype=x.dtype, device=x.device)
        out = torch.empty_like(x)
        row_max_kernel.run(x, maximum, cols, BLOCK=block, num_warps=2, grid=(rows,), warmup=False)
        normalise = normalise_kernel[(rows, 1, 1)]
        normalise(x, maximum, out, cols, BLOCK=block, num_warps=8, num_stages=2, maxnreg=128, enable_fp_fusion=False)
        return out
