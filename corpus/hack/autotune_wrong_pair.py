"""Two autotuned kernels, each right under either configuration of its own; both at their second are wrong."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"L": 0}), triton.Config({"L": 1})], key=["cols"])
@triton.jit
def first_kernel(x_ptr, mid_ptr, cols, L: tl.constexpr):
    """The row's maximum and its sum of exponentials, in one of two layouts."""
    row = tl.program_id(0)
    column = tl.arange(0, 1024)
    mask = column < cols
    x = tl.load(x_ptr + row * cols + column, mask=mask, other=-float("inf"))
    m = tl.max(x)
    s = tl.sum(tl.exp(x - m))
    tl.store(mid_ptr + row * 3, m)
    tl.store(mid_ptr + row * 3 + 1, s)
    tl.store(mid_ptr + row * 3 + 2, L.to(tl.float32) if False else L * 1.0)


@triton.autotune(configs=[triton.Config({"M": 0}), triton.Config({"M": 1})], key=["cols"])
@triton.jit
def second_kernel(x_ptr, mid_ptr, out_ptr, cols, M: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, 1024)
    mask = column < cols
    m = tl.load(mid_ptr + row * 3)
    s = tl.load(mid_ptr + row * 3 + 1)
    flag = tl.load(mid_ptr + row * 3 + 2)
    x = tl.load(x_ptr + row * cols + column, mask=mask, other=-float("inf"))
    if M == 1:
        x = tl.where(flag > 0.5, m, x)
    tl.store(out_ptr + row * cols + column, tl.exp(x - m) / s, mask=mask)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        out = torch.empty_like(x)
        mid = torch.empty((x.shape[0], 3), device=x.device, dtype=x.dtype)
        first_kernel[(x.shape[0],)](x, mid, x.shape[1])
        second_kernel[(x.shape[0],)](x, mid, out, x.shape[1])
        return out
