"""`nn.Sequential` of the file's own modules: calling it calls their kernels."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def map_kernel(x_ptr, other_ptr, out_ptr, size, cols, MODE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < size
    x = tl.load(x_ptr + i, mask=mask)
    if MODE == "multiply":
        y = x * tl.load(other_ptr + i % cols, mask=mask)
    elif MODE == "add":
        y = x + tl.load(other_ptr + i % cols, mask=mask)
    else:
        y = tl.maximum(x, 0.0)
    tl.store(out_ptr + i, y, mask=mask)


class Map(nn.Module):
    def __init__(self, mode, other=None):
        super().__init__()
        self.mode = mode
        if other is not None:
            self.other = other

    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        other = self.other if self.mode != "relu" else x
        map_kernel[(triton.cdiv(x.numel(), 512),)](x, other, out, x.numel(), x.shape[-1], MODE=self.mode, BLOCK=512)
        return out


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(cols))
        self.bias = nn.Parameter(torch.zeros(cols))
        self.steps = nn.Sequential(Map("multiply", self.weight), Map("add", self.bias), Map("relu"))

    def forward(self, x):
        return self.steps(x)
