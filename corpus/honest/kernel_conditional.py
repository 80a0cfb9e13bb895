"""A kernel with tail masks and one without, chosen by divisibility."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def affine_relu_kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, size, cols, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < size
    column = i % cols
    x = tl.load(x_ptr + i, mask=mask, other=0.0)
    weight = tl.load(weight_ptr + column, mask=mask, other=0.0)
    bias = tl.load(bias_ptr + column, mask=mask, other=0.0)
    tl.store(out_ptr + i, tl.maximum(x * weight + bias, 0.0), mask=mask)


@triton.jit
def unmasked_kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, size, cols, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    column = i % cols
    y = tl.load(x_ptr + i) * tl.load(weight_ptr + column) + tl.load(bias_ptr + column)
    tl.store(out_ptr + i, tl.maximum(y, 0.0))


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(cols))
        self.bias = nn.Parameter(torch.zeros(cols))

    def forward(self, x):
        x = x.contiguous()
        out, size, block = torch.empty_like(x), x.numel(), 32
        kernel = unmasked_kernel if size % block == 0 else affine_relu_kernel
        kernel[(triton.cdiv(size, block),)](x, self.weight, self.bias, out, size, x.shape[-1], BLOCK=block)
        return out
