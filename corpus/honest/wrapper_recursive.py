"""Halves the rows until a piece is small, and launches on the pieces."""

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


def apply(x, weight, bias, out, limit):
    if x.shape[0] > limit:
        half = x.shape[0] // 2
        apply(x[:half], weight, bias, out[:half], limit)
        apply(x[half:], weight, bias, out[half:], limit)
        return
    affine_relu_kernel[(triton.cdiv(x.numel(), 512),)](x, weight, bias, out, x.numel(), x.shape[-1], BLOCK=512)


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(cols))
        self.bias = nn.Parameter(torch.zeros(cols))

    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        apply(x, self.weight, self.bias, out, limit=16)
        return out
