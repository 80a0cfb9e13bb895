"""The kernel as an attribute, so that a subclass can bring another."""

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


class Operator(nn.Module):
    kernel = None
    block = 256

    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        self.kernel[(triton.cdiv(x.numel(), self.block),)](
            x, self.weight, self.bias, out, x.numel(), x.shape[-1], BLOCK=self.block
        )
        return out


class ModelNew(Operator):
    def __init__(self, cols):
        super().__init__()
        self.kernel = affine_relu_kernel
        self.weight = nn.Parameter(torch.ones(cols))
        self.bias = nn.Parameter(torch.zeros(cols))
