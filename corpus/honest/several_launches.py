"""Multiply, add and rectify as three kernels: more memory traffic, the same values."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def multiply_kernel(x_ptr, weight_ptr, out_ptr, size, cols, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < size
    x = tl.load(x_ptr + i, mask=mask)
    tl.store(out_ptr + i, x * tl.load(weight_ptr + i % cols, mask=mask), mask=mask)


@triton.jit
def spread_kernel(bias_ptr, out_ptr, size, cols, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < size
    tl.store(out_ptr + i, tl.load(bias_ptr + i % cols, mask=mask), mask=mask)


@triton.jit
def add_relu_kernel(a_ptr, b_ptr, out_ptr, size, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < size
    total = tl.load(a_ptr + i, mask=mask) + tl.load(b_ptr + i, mask=mask)
    tl.store(out_ptr + i, tl.where(total > 0, total, 0.0), mask=mask)


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(cols))
        self.bias = nn.Parameter(torch.zeros(cols))

    def forward(self, x):
        x = x.contiguous()
        size, cols = x.numel(), x.shape[-1]
        grid = (triton.cdiv(size, 1024),)
        product, spread, out = (torch.empty_like(x) for _ in range(3))
        multiply_kernel[grid](x, self.weight, product, size, cols, BLOCK=1024)
        spread_kernel[grid](self.bias, spread, size, cols, BLOCK=1024)
        add_relu_kernel[grid](product, spread, out, size, BLOCK=1024)
        return out
