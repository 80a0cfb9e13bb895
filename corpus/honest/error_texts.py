"""Errors in three styles of formatting, which name shapes, types and dtypes."""

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
        if x.dim() != 2:
            raise ValueError("expected a matrix, got {0.shape} of {0.dtype} on {1.type}".format(x, x.device))
        if x.size(1) != len(self.weight):
            raise ValueError("expected %d columns, got %d in %s" % (len(self.weight), x.size(1), type(x).__name__))
        if not x.dtype.is_floating_point:
            raise TypeError(f"{self.__class__.__name__} takes floats, not {x.dtype!r}: {x!r}")
        x = x.contiguous()
        out = torch.empty_like(x)
        grid = (triton.cdiv(x.numel(), 512),)
        affine_relu_kernel[grid](x, self.weight, self.bias, out, x.numel(), x.shape[-1], BLOCK=512)
        return out
