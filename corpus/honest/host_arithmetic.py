"""Arithmetic on the host: on sizes, with functions whose names tensors have too."""

import math

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


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(cols))
        self.bias = nn.Parameter(torch.zeros(cols))

    def forward(self, x):
        size = math.prod(x.shape)
        sizes = [s for s in x.shape if s > 1] or [1]
        block = 1 << max(6, min(10, math.ceil(math.log2(sum(sizes) + 1))))
        block = int(pow(2, round(math.log(block, 2)))) if abs(block) else 64
        programs, rest = divmod(size, block)
        programs += any([rest]) * 1
        assert all(s > 0 for s in sizes) and math.isclose(math.sqrt(block) ** 2, block) and block.bit_length() > 6
        x = x.contiguous()
        out = torch.empty_like(x)
        affine_relu_kernel[(programs,)](x, self.weight, self.bias, out, size, x.shape[-1], BLOCK=block)
        return out
