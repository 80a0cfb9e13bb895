"""Hints for the compiler and the caches: they change no value."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_sum_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    tl.assume(cols > 0)
    tl.assume(row >= 0)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, cols, BLOCK):
        start = tl.multiple_of(start, BLOCK)
        column = tl.max_contiguous(tl.multiple_of(start + tl.arange(0, BLOCK), BLOCK), BLOCK)
        x = tl.load(x_ptr + row * cols + column, mask=column < cols, other=0.0, eviction_policy="evict_first")
        total += x - tl.load(x_ptr + row * cols + column, mask=column < 0, other=0.0, cache_modifier=".cg")
    tl.debug_barrier()
    tl.store(out_ptr + row, tl.sum(total), cache_modifier=".wt")


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        out = torch.empty(rows, dtype=x.dtype, device=x.device)
        row_sum_kernel[(rows,)](x, out, cols, BLOCK=256)
        return out
