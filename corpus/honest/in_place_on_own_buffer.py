"""Two launches on the same memory: the second reads and writes what the first wrote."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def multiply_kernel(x_ptr, weight_ptr, out_ptr, size, cols, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < size
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=mask) * tl.load(weight_ptr + i % cols, mask=mask), mask=mask)


@triton.jit
def add_relu_in_place_kernel(y_ptr, bias_ptr, size, cols, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < size
    y = tl.load(y_ptr + i, mask=mask) + tl.load(bias_ptr + i % cols, mask=mask)
    tl.store(y_ptr + i, tl.maximum(y, 0.0), mask=mask)


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(cols))
        self.bias = nn.Parameter(torch.zeros(cols))

    def forward(self, x):
        size, cols = x.numel(), x.shape[-1]
        grid = (triton.cdiv(size, 256),)
        out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        multiply_kernel[grid](x.contiguous(), self.weight, out, size, cols, BLOCK=256)
        add_relu_in_place_kernel[grid](out, self.bias, size, cols, BLOCK=256)
        return out
