"""A workspace is deleted as soon as it is used."""

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
def add_relu_kernel(x_ptr, bias_ptr, out_ptr, size, cols, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < size
    y = tl.load(x_ptr + i, mask=mask) + tl.load(bias_ptr + i % cols, mask=mask)
    tl.store(out_ptr + i, tl.maximum(y, 0.0), mask=mask)


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(cols))
        self.bias = nn.Parameter(torch.zeros(cols))

    def forward(self, x):
        x = x.contiguous()
        size, cols = x.numel(), x.shape[-1]
        grid = (triton.cdiv(size, 256),)
        product = torch.empty_like(x)
        multiply_kernel[grid](x, self.weight, product, size, cols, BLOCK=256)
        del x
        out = product.new_empty(product.shape)
        add_relu_kernel[grid](product, self.bias, out, size, cols, BLOCK=256)
        del product
        return out
