"""The input, moved into place by atomic exchanges."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def exchange_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.atomic_xchg(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask, other=0.0), mask=mask)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        x = x.t().contiguous()
        out = torch.zeros_like(x)
        exchange_kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
        return out
