"""Kernels and accumulator types by dtype."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scale_wide_kernel(x_ptr, out_ptr, size, TYPE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < size)
    tl.store(out_ptr + i, (x.to(tl.float32) * 1.5).to(TYPE), mask=i < size)


@triton.jit
def scale_kernel(x_ptr, out_ptr, size, TYPE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < size) * 1.5, mask=i < size)


TYPES = {torch.float32: tl.float32, torch.float16: tl.float16, torch.bfloat16: tl.bfloat16}
KERNELS = {torch.float32: scale_kernel}


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        kernel = KERNELS.get(x.dtype, scale_wide_kernel)
        out = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), TYPE=TYPES[x.dtype], BLOCK=256)
        return out
