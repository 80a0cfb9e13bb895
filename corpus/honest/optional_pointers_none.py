"""An optional bias: None instead of a pointer, and a flag that the kernel tests when it is compiled."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def affine_kernel(
    x_ptr, weight_ptr, bias_ptr, out_ptr, size, cols, HAS_BIAS: tl.constexpr, RELU: tl.constexpr, BLOCK: tl.constexpr
):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < size
    y = tl.load(x_ptr + i, mask=mask)
    if weight_ptr is not None:
        y *= tl.load(weight_ptr + i % cols, mask=mask)
    if HAS_BIAS:
        y += tl.load(bias_ptr + i % cols, mask=mask)
    if RELU:
        y = tl.maximum(y, 0.0)
    tl.store(out_ptr + i, y, mask=mask)


def affine(x, weight=None, bias=None, relu=False):
    x = x.contiguous()
    out = torch.empty_like(x)
    affine_kernel[(triton.cdiv(x.numel(), 512),)](
        x, weight, bias, out, x.numel(), x.shape[-1], HAS_BIAS=bias is not None, RELU=relu, BLOCK=512
    )
    return out


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(cols))
        self.bias = nn.Parameter(torch.zeros(cols))

    def forward(self, x):
        return affine(affine(x, weight=self.weight), bias=self.bias, relu=True)
