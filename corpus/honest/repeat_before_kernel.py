"""Operands repeated by `Tensor.repeat`, then an elementwise kernel."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def difference_kernel(a_ptr, b_ptr, out_ptr, size, cols, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < size
    d = tl.load(a_ptr + i // cols, mask=mask) - tl.load(b_ptr + i, mask=mask)
    tl.store(out_ptr + i, tl.maximum(d, 0.0), mask=mask)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, a, b):
        right = b.repeat(a.shape[0], 1)
        out = torch.empty_like(right)
        difference_kernel[(triton.cdiv(out.numel(), 512),)](
            a.contiguous(), right, out, out.numel(), b.shape[0], BLOCK=512
        )
        return out
