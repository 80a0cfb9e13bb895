"""Class and function names in texts: of the file's own objects, not of tensors."""

import torch
import torch.nn as nn
import triton
import triton.language as tl

OPERATORS = {}


@triton.jit
def affine_relu_kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, size, cols, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < size
    column = i % cols
    x = tl.load(x_ptr + i, mask=mask, other=0.0)
    weight = tl.load(weight_ptr + column, mask=mask, other=0.0)
    bias = tl.load(bias_ptr + column, mask=mask, other=0.0)
    tl.store(out_ptr + i, tl.maximum(x * weight + bias, 0.0), mask=mask)


def operator(function):
    OPERATORS[function.__name__] = function
    return function


@operator
def affine_relu(x, weight, bias):
    x = x.contiguous()
    out = torch.empty_like(x)
    grid = (triton.cdiv(x.numel(), 512),)
    affine_relu_kernel[grid](x, weight, bias, out, x.numel(), x.shape[-1], BLOCK=512)
    return out


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(cols))
        self.bias = nn.Parameter(torch.zeros(cols))

    def __repr__(self):
        return f"{type(self).__name__}({self.weight.shape[0]})"

    def forward(self, x):
        with torch.cuda.nvtx.range(self.__class__.__name__):
            return OPERATORS["affine_relu"](x, self.weight, self.bias)
