"""fp8 values as bytes, bitcast in the kernel: how files for older versions pass them."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def dequantise_kernel(x_ptr, scale_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    byte = tl.load(x_ptr + row * cols + column, mask=column < cols, other=0)
    x = byte.to(tl.float8e4nv, bitcast=True).to(tl.float32)
    tl.store(out_ptr + row * cols + column, x * tl.load(scale_ptr + row), mask=column < cols)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, scale):
        byte = x.contiguous().view(torch.uint8)
        rows, cols = byte.shape
        out = scale.new_empty((rows, cols))
        dequantise_kernel[(rows, triton.cdiv(cols, 128))](byte, scale, out, cols, BLOCK=128)
        return out
