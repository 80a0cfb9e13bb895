"""A kernel that never ends: hangs an in-process benchmark."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def spin_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + column, mask=column < cols, other=0.0)
    total = tl.sum(x)
    while total == total:
        x = x * 0.5 + 0.25
        total = tl.sum(x)
    tl.store(out_ptr + row * cols + column, x, mask=column < cols)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        out = torch.empty_like(x)
        spin_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
