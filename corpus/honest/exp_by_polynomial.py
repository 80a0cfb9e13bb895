"""exp(x) = 2^n * p(r): the exponent by bit arithmetic, a polynomial for the rest."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def exponential(x):
    x = tl.maximum(x, -87.0)
    n = tl.floor(x * 1.4426950408889634 + 0.5)
    r = (x - n * 0.693359375) + n * 2.12194440e-4
    p = 1.9875691500e-4
    p = p * r + 1.3981999507e-3
    p = p * r + 8.3334519073e-3
    p = p * r + 4.1665795894e-2
    p = p * r + 1.6666665459e-1
    p = p * r + 5.0000001201e-1
    p = p * r * r + r + 1.0
    power = ((n.to(tl.int32) + 127) << 23).to(tl.float32, bitcast=True)
    return p * power


@triton.jit
def softmax_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * cols
    column = tl.arange(0, BLOCK)
    mask = column < cols
    x = tl.load(x_ptr + row + column, mask=mask, other=-float("inf"))
    numerator = tl.where(mask, exponential(x - tl.max(x)), 0.0)
    tl.store(out_ptr + row + column, numerator / tl.sum(numerator), mask=mask)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        out = torch.empty_like(x)
        softmax_kernel[(rows,)](x, out, cols, BLOCK=triton.next_power_of_2(cols), num_warps=8)
        return out
