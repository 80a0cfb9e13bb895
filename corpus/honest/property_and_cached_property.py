"""Every kind of method that Python has."""

from functools import cached_property

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

    @cached_property
    def block(self):
        return min(512, triton.next_power_of_2(self.cols))

    @property
    def cols(self):
        return self.weight.shape[0]

    @staticmethod
    def programs(size, block):
        return triton.cdiv(size, block)

    @classmethod
    def allocate(cls, x):
        return torch.empty_like(x)

    def forward(self, x):
        x = x.contiguous()
        out = self.allocate(x)
        affine_relu_kernel[(self.programs(x.numel(), self.block),)](
            x, self.weight, self.bias, out, x.numel(), self.cols, BLOCK=self.block
        )
        return out
