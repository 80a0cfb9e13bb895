"""The length is bounded from below, as torch bounds it."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    mask = c < cols
    x = tl.load(x_ptr + row * cols + c, mask=mask, other=0.0)
    scale = tl.max(tl.abs(x))
    scale = tl.where(scale > 0.0, scale, 1.0)
    z = x / scale
    length = tl.sqrt(tl.sum(z * z)) * scale
    y = x / tl.maximum(length, 1e-12)
    tl.store(y_ptr + row * cols + c, y, mask=mask)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=512)
        return y
