"""A list of operator modules, applied in order: scale and shift, then rectify in place."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def affine_kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, size, cols, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < size
    y = tl.load(x_ptr + i, mask=mask) * tl.load(weight_ptr + i % cols, mask=mask)
    tl.store(out_ptr + i, y + tl.load(bias_ptr + i % cols, mask=mask), mask=mask)


@triton.jit
def relu_kernel(x_ptr, out_ptr, size, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < size)
    tl.store(out_ptr + i, tl.maximum(x, 0.0), mask=i < size)


class ReLU(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        relu_kernel[(triton.cdiv(x.numel(), 512),)](x, out, x.numel(), BLOCK=512)
        return out


class Affine(nn.Module):
    def __init__(self, owner):
        super().__init__()
        self.owner = [owner]

    def forward(self, x):
        owner, x, out = self.owner[0], x.contiguous(), torch.empty_like(x)
        affine_kernel[(triton.cdiv(x.numel(), 512),)](
            x, owner.weight, owner.bias, out, x.numel(), x.shape[-1], BLOCK=512
        )
        return out


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(cols))
        self.bias = nn.Parameter(torch.zeros(cols))
        self.stages = nn.ModuleList([Affine(self), ReLU()])

    def forward(self, x):
        for stage in self.stages:
            x = stage(x)
        return x
