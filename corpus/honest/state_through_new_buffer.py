"""The new average is made beside the old one and copied over it at the end."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def average_kernel(x_ptr, old_ptr, new_ptr, calls_ptr, new_calls_ptr, rows, cols, BLOCK: tl.constexpr):
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = column < cols
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for row in range(rows):
        total += tl.load(x_ptr + row * cols + column, mask=mask, other=0.0)
    old = tl.load(old_ptr + column, mask=mask)
    tl.store(new_ptr + column, old + 0.1 * (total / rows - old), mask=mask)
    tl.store(new_calls_ptr, tl.load(calls_ptr) + 1)


@triton.jit
def subtract_kernel(x_ptr, average_ptr, out_ptr, size, cols, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < size
    y = tl.load(x_ptr + i, mask=mask) - tl.load(average_ptr + i % cols, mask=mask)
    tl.store(out_ptr + i, y, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.register_buffer("average", torch.zeros(cols))
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        average, calls = torch.empty_like(self.average), torch.empty_like(self.calls)
        average_kernel[(triton.cdiv(cols, 128),)](x, self.average, average, self.calls, calls, rows, cols, BLOCK=128)
        out = torch.empty_like(x)
        subtract_kernel[(triton.cdiv(x.numel(), 512),)](x, average, out, x.numel(), cols, BLOCK=512)
        self.average.copy_(average)
        self.calls.copy_(calls)
        return out
