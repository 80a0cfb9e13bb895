"""Kernel arguments as tuples of pointers and strides, default arguments, and a grid given as an integer list."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def strided_add_kernel(inputs, out_ptr, shape, x_strides, y_strides, floor=0.0, BLOCK: tl.constexpr = 32):
    row = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)[:, None]
    col = (tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)[None, :]
    mask = (row < shape[0]) & (col < shape[1])
    x = tl.load(inputs[0] + row * x_strides[0] + col * x_strides[1], mask=mask, other=0.0)
    y = tl.load(inputs[1] + row * y_strides[0] + col * y_strides[1], mask=mask, other=0.0)
    tl.store(out_ptr + row * shape[1] + col, x + tl.maximum(y, floor), mask=mask)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, y):
        out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        grid = [triton.cdiv(size, 32) for size in x.shape]
        strided_add_kernel[grid]((x, y), out, tuple(x.shape), x.stride(), y.stride())
        return out
