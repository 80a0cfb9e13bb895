"""A dataclass with slots from functools.cache, by size."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


import dataclasses
import functools


@dataclasses.dataclass(slots=True)
class Cfg:
    B: int
    num_warps: int


@functools.lru_cache(maxsize=None)
def pick(n):
    return Cfg(128 if n < 512 else 512, 2)


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
        k[(triton.cdiv(x.numel(), c.B),)](x, y, x.numel(), B=c.B, num_warps=c.num_warps)
        return y
