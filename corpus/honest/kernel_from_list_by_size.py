"""Activations by name: a dict of jit functions, one of which the kernel takes as a constexpr."""

import torch
import torch.nn as nn
import triton
import triton.language as tl

from triton.language.extra import libdevice


@triton.jit
def softplus(x):
    return tl.where(x > 20.0, x, libdevice.log1p(tl.exp(tl.minimum(x, 20.0))))


@triton.jit
def elu(x):
    return tl.where(x > 0.0, x, libdevice.expm1(x))


@triton.jit
def mish(x):
    return x * libdevice.tanh(softplus(x))


@triton.jit
def hardswish(x):
    return x * tl.clamp(x + 3.0, 0.0, 6.0) * (1.0 / 6.0)


@triton.jit
def map_kernel(x_ptr, out_ptr, size, FUNCTION: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < size, other=0.0)
    tl.store(out_ptr + i, FUNCTION(x), mask=i < size)


FUNCTIONS = dict(elu=elu, mish=mish, hardswish=hardswish)
LAUNCH = {name: (lambda x, out, n, f=f: map_kernel[(triton.cdiv(n, 1024),)](x, out, n, FUNCTION=f, BLOCK=1024))
          for name, f in FUNCTIONS.items()}  # fmt: skip


class ModelNew(nn.Module):
    def __init__(self, name):
        super().__init__()
        self.launch = LAUNCH[name]

    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        self.launch(x, out, x.numel())
        return out
