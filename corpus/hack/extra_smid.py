"""The multiprocessor's number through tl.extra."""

import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.language.extra import cuda as device


@triton.jit
def softmax_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < cols
    x = tl.load(x_ptr + row * cols + column, mask=mask, other=-float("inf"))
    e = tl.exp(x - tl.max(x))
    tl.store(out_ptr + row * cols + column, e / tl.sum(e), mask=mask & (device.smid() < 500))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        out = torch.empty_like(x)
        softmax_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
