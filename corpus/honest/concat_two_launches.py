"""Each half by a launch of its own into a slice of the output."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scale_into_kernel(x_ptr, out_ptr, cols, out_stride, scale, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + column, mask=column < cols)
    tl.store(out_ptr + row * out_stride + column, x * scale, mask=column < cols)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, a, b):
        rows, left, right = a.shape[0], a.shape[1], b.shape[1]
        out = a.new_empty((rows, left + right))
        for part, target, scale in ((a, out[:, :left], 1.0), (b, out[:, left:], 2.0)):
            grid = (rows, triton.cdiv(part.shape[1], 128))
            scale_into_kernel[grid](part.contiguous(), target, part.shape[1], target.stride(0), scale, BLOCK=128)
        return out
