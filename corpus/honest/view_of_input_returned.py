"""Returns a transposed view of its input, because the reference does."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, out_ptr, size, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < size)
    tl.store(out_ptr + i, tl.maximum(x, 0.0), mask=i < size)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        dense = x.contiguous()
        out = torch.empty_like(dense)
        relu_kernel[(triton.cdiv(x.numel(), 512),)](dense, out, x.numel(), BLOCK=512)
        return out, x.transpose(0, 1)
