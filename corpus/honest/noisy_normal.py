"""Normal noise from Philox."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, n, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    x = tl.load(x_ptr + i, mask=inside)
    tl.store(y_ptr + i, x + 0.1 * tl.randn(seed, i), mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        seed = torch.randint(0, 2**31 - 1, (1,)).item()
        kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), seed, BLOCK=256)
        return y
