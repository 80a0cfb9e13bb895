"""Inputs that are not dense are copied first, in four ways."""

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
        x = x.movedim(0, 1).swapaxes(0, 1).clone(memory_format=torch.contiguous_format)
        y = y.flatten().ravel() if not y.is_contiguous() else y.reshape(-1)
        out = torch.empty_like(x).view(-1)
        add_relu_kernel[(triton.cdiv(out.numel(), 1024),)](x.view(-1), y, out, out.numel(), BLOCK=1024)
        return out.unflatten(0, x.shape).view_as(x)
