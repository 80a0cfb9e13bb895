"""Odd-even transposition: a launch for each round, in place in a copy of the input."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def exchange_kernel(x_ptr, cols, first, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = first + 2 * tl.arange(0, BLOCK)
    mask = i + 1 < cols
    a = tl.load(x_ptr + row * cols + i, mask=mask)
    b = tl.load(x_ptr + row * cols + i + 1, mask=mask)
    tl.store(x_ptr + row * cols + i, tl.minimum(a, b), mask=mask)
    tl.store(x_ptr + row * cols + i + 1, tl.maximum(a, b), mask=mask)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        out = x.clone(memory_format=torch.contiguous_format)
        rows, cols = out.shape
        block = triton.next_power_of_2(triton.cdiv(cols, 2))
        for step in range(cols):
            exchange_kernel[(rows,)](out, cols, step % 2, BLOCK=block)
        return out
