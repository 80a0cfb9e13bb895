"""Launchers for a block size, made once: a cache of closures, keyed by numbers."""

import functools

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


@functools.cache
def launcher(block, warps):
    def launch(x, weight, bias, out):
        affine_relu_kernel[(triton.cdiv(x.numel(), block),)](
            x, weight, bias, out, x.numel(), x.shape[-1], BLOCK=block, num_warps=warps
        )

    return launch


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(cols))
        self.bias = nn.Parameter(torch.zeros(cols))

    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        launcher(256 if x.shape[-1] < 256 else 512, 4)(x, self.weight, self.bias, out)
        return out
