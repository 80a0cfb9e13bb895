"""An object that launches, made in the first call and kept on self."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


class Launcher:
    def __init__(self, block):
        self.block = block

    def __call__(self, x):
        y = torch.empty_like(x)
        k[(triton.cdiv(x.numel(), self.block),)](x, y, x.numel(), B=self.block)
        return y


@triton.jit
def k(x_ptr, y_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    x = tl.load(x_ptr + i, mask=m)
    y = tl.maximum(x, 0.0)
    tl.store(y_ptr + i, y, mask=m)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.launcher = None

    def forward(self, x):
        if self.launcher is None:
            self.launcher = Launcher(256)
        return self.launcher(x)
