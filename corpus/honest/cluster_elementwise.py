"""Clusters without sharing: two thread blocks a program, each with its half of the elements."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def add_relu_kernel(x_ptr, y_ptr, out_ptr, size, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < size
    y = tl.load(y_ptr + i, mask=mask)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=mask) + tl.where(y > 0, y, 0.0), mask=mask)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, y):
        x, y = x.contiguous(), y.contiguous()
        out = torch.empty_like(x)
        add_relu_kernel[(triton.cdiv(out.numel(), 2048),)](x, y, out, out.numel(), BLOCK=2048, num_ctas=2)
        return out
