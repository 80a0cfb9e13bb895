"""Debugging aids left in the kernel: off unless TRITON_DEBUG is set."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_sum_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr, VERBOSE: tl.constexpr = False):
    tl.static_assert(BLOCK >= 16, "BLOCK is too small")
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, cols, BLOCK):
        column = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * cols + column, mask=column < cols, other=0.0)
    tl.device_assert(cols > 0, "empty row")
    if VERBOSE:
        tl.device_print("total", total)
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
