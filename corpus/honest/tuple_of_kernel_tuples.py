"""Tuples as kernel arguments and as results of a device function."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def offsets(row, col, strides):
    return row[:, None] * strides[0] + col[None, :] * strides[1]


@triton.jit
def tile(rows, cols, BLOCK_R: tl.constexpr, BLOCK_C: tl.constexpr):
    row = tl.program_id(0) * BLOCK_R + tl.arange(0, BLOCK_R)
    col = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)
    return row, col, (row[:, None] < rows) & (col[None, :] < cols)


@triton.jit
def add_relu_kernel(pointers, strides, shape, BLOCK_R: tl.constexpr, BLOCK_C: tl.constexpr):
    row, col, mask = tile(shape[0], shape[1], BLOCK_R, BLOCK_C)
    x = tl.load(pointers[0] + offsets(row, col, strides[0]), mask=mask)
    y = tl.load(pointers[1] + offsets(row, col, strides[1]), mask=mask)
    tl.store(pointers[2] + offsets(row, col, strides[2]), x + tl.maximum(y, 0.0), mask=mask)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, y):
        out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        tensors = (x, y, out)
        grid = (triton.cdiv(x.shape[0], 32), triton.cdiv(x.shape[1], 32))
        add_relu_kernel[grid](tensors, tuple(t.stride() for t in tensors), tuple(x.shape), BLOCK_R=32, BLOCK_C=32)
        return out
