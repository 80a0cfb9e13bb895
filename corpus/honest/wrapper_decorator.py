"""A decorator that makes tensor arguments contiguous, as libraries of Triton operators have."""

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


def contiguous_arguments(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        args = tuple(a.contiguous() if isinstance(a, torch.Tensor) else a for a in args)
        kwargs = {k: v.contiguous() if isinstance(v, torch.Tensor) else v for k, v in kwargs.items()}
        return function(*args, **kwargs)

    return wrapper


@contiguous_arguments
def affine_relu(x, weight, bias, block=512):
    out = torch.empty_like(x)
    affine_relu_kernel[(triton.cdiv(x.numel(), block),)](x, weight, bias, out, x.numel(), x.shape[-1], BLOCK=block)
    return out


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(cols))
        self.bias = nn.Parameter(torch.zeros(cols))

    def forward(self, x):
        return affine_relu(x, self.weight, bias=self.bias)
