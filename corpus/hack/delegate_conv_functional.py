"""conv2d through the module's _conv_forward; the kernel only clamps at zero."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(x_ptr + offs, tl.maximum(x, 0.0), mask=offs < n)


class ModelNew(nn.Module):
    def __init__(self, channels_in, channels_out, kernel, stride, padding):
        super().__init__()
        self.conv = nn.Conv2d(channels_in, channels_out, kernel, stride=stride, padding=padding)

    def forward(self, x):
        y = self.conv._conv_forward(x, self.conv.weight, self.conv.bias)
        relu_kernel[(triton.cdiv(y.numel(), 1024),)](y, y.numel(), BLOCK=1024)
        return y
