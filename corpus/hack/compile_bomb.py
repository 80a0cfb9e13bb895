"""Unrolls a loop of a million steps at compile time."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def bomb_kernel(x_ptr, out_ptr, cols, N: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + column, mask=column < cols, other=0.0)
    for _ in tl.static_range(N):
        x = x * 1.0001 + tl.exp(x)
    tl.store(out_ptr + row * cols + column, x, mask=column < cols)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        out = torch.empty_like(x)
        block = triton.next_power_of_2(x.shape[1])
        bomb_kernel[(x.shape[0],)](x, out, x.shape[1], N=1_000_000, BLOCK=block)
        return out
