"""The running average and the counter are buffers that the kernels update where they lie."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def update_kernel(x_ptr, average_ptr, calls_ptr, rows, cols, BLOCK: tl.constexpr):
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = column < cols
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for row in range(rows):
        total += tl.load(x_ptr + row * cols + column, mask=mask, other=0.0)
    average = tl.load(average_ptr + column, mask=mask)
    tl.store(average_ptr + column, 0.9 * average + 0.1 * (total / rows), mask=mask)
    if tl.program_id(0) == 0:
        tl.store(calls_ptr, tl.load(calls_ptr) + 1)


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
        update_kernel[(triton.cdiv(cols, 128),)](x, self.average, self.calls, rows, cols, BLOCK=128)
        out = torch.empty_like(x)
        subtract_kernel[(triton.cdiv(x.numel(), 512),)](x, self.average, out, x.numel(), cols, BLOCK=512)
        return out
