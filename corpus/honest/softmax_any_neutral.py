"""Softmax whose padding is minus infinity."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    mask = c < cols
    x = tl.load(x_ptr + row * cols + c, mask=mask, other=-float("inf"))
    e = tl.where(mask, tl.exp(x - tl.max(x)), 0.0)
    tl.store(y_ptr + row * cols + c, e / tl.sum(e), mask=mask)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=512)
        return y
