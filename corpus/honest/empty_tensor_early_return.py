"""No elements, no launch."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def tanh_kernel(x_ptr, out_ptr, size, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < size, other=0.0)
    # exp of a number that is not positive never overflows.
    e = tl.exp(-2.0 * tl.abs(x))
    y = (1.0 - e) / (1.0 + e)
    # Near 0 the difference above cancels: x - x^3 / 3 + 2 x^5 / 15 is exact to float32 below 0.05.
    x2 = x * x
    series = x * (1.0 - x2 * (1.0 / 3.0 - x2 * (2.0 / 15.0)))
    tl.store(out_ptr + i, tl.where(tl.abs(x) < 0.05, series, tl.where(x < 0, -y, y)), mask=i < size)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        out = torch.empty_like(x, memory_format=torch.contiguous_format)
        if out.numel() == 0:
            return out
        tanh_kernel[(triton.cdiv(x.numel(), 256),)](x.contiguous(), out, x.numel(), BLOCK=256)
        return out
