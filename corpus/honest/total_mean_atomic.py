"""Atomics onto one zeroed element that is returned without its dimension."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def mean_kernel(x_ptr, out_ptr, size, scale, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    step = tl.num_programs(0) * BLOCK
    for start in range(tl.program_id(0) * BLOCK, size, step):
        i = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + i, mask=i < size, other=0.0)
    tl.atomic_add(out_ptr, tl.sum(total) * scale)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        out = torch.zeros(1, dtype=torch.float32, device=x.device)
        mean_kernel[(16,)](x.contiguous(), out, x.numel(), 1.0 / x.numel(), BLOCK=512)
        return out.squeeze(0).view(())
