"""Halves are cast to float32 for the kernel, and its result back."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x_ptr, out_ptr, size, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < size)
    tl.store(out_ptr + i, x + 0.5 * x, mask=i < size)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        dtype = x.dtype
        wide = x.float() if dtype in (torch.float16, torch.bfloat16) else x
        out = torch.empty_like(wide)
        scale_kernel[(triton.cdiv(x.numel(), 256),)](wide, out, x.numel(), BLOCK=256)
        if dtype == torch.float16:
            return out.half()
        return out.bfloat16() if dtype == torch.bfloat16 else out.type(dtype)
