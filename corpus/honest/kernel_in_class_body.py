"""The kernel as a static method of the class that launches it."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


class ModelNew(nn.Module):
    @staticmethod
    @triton.jit
    def kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, size, cols, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        mask = i < size
        y = tl.load(x_ptr + i, mask=mask) * tl.load(weight_ptr + i % cols, mask=mask)
        tl.store(out_ptr + i, tl.maximum(y + tl.load(bias_ptr + i % cols, mask=mask), 0.0), mask=mask)

    def __init__(self, cols):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(cols))
        self.bias = nn.Parameter(torch.zeros(cols))

    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        self.kernel[(triton.cdiv(x.numel(), 512),)](x, self.weight, self.bias, out, x.numel(), x.shape[-1], BLOCK=512)
        return out
