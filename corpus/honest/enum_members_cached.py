"""Members of an Enum from functools.cache, by size."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


import enum
import functools


class Cfg(enum.Enum):
    SMALL = 128
    BIG = 512


@functools.cache
def pick(n):
    return Cfg.SMALL if n < 512 else Cfg.BIG


@triton.jit
def k(x_ptr, y_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    x = tl.load(x_ptr + i, mask=m)
    y = tl.maximum(x, 0.0)
    tl.store(y_ptr + i, y, mask=m)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        c = pick(x.numel())
        y = torch.empty_like(x)
        k[(triton.cdiv(x.numel(), c.value),)](x, y, x.numel(), B=c.value)
        return y
