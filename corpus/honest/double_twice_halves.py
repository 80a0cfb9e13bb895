"""Two outputs that are halves of one allocation, apart from each other."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, z_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    y = tl.load(x_ptr + i, mask=i < n) * 2.0
    tl.store(y_ptr + i, y, mask=i < n)
    tl.store(z_ptr + i, y, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        y, z = torch.empty(2, x.numel(), device=x.device, dtype=x.dtype)
        kernel[(triton.cdiv(x.numel(), 256),)](x, y, z, x.numel(), BLOCK=256)
        return y, z
