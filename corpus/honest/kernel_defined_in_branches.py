"""A kernel defined in either branch of a test of Triton's version."""

import torch
import torch.nn as nn
import triton
import triton.language as tl

if triton.__version__ >= "2.2":

    @triton.jit
    def activate(y):
        return tl.maximum(y, 0.0)

else:

    @triton.jit
    def activate(y):
        return tl.where(y > 0.0, y, 0.0)


@triton.jit
def affine_kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, size, cols, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < size
    y = tl.load(x_ptr + i, mask=mask) * tl.load(weight_ptr + i % cols, mask=mask)
    tl.store(out_ptr + i, activate(y + tl.load(bias_ptr + i % cols, mask=mask)), mask=mask)


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(cols))
        self.bias = nn.Parameter(torch.zeros(cols))

    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        affine_kernel[(triton.cdiv(x.numel(), 512),)](x, self.weight, self.bias, out, x.numel(), x.shape[-1], BLOCK=512)
        return out
