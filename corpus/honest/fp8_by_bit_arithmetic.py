"""Decodes e4m3 by hand: sign, exponent and mantissa moved to where float32 has them."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def decode(byte):
    sign = (byte >> 7) << 31
    magnitude = byte & 0x7F
    # e4m3 has bias 7, float32 has bias 127: the shifted number is too small by 2^120, subnormals included.
    value = (magnitude << 20).to(tl.float32, bitcast=True) * 1.329227995784916e36
    value = tl.where(magnitude == 0x7F, float("nan"), value)
    return (value.to(tl.uint32, bitcast=True) | sign).to(tl.float32, bitcast=True)


@triton.jit
def dequantise_kernel(x_ptr, scale_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    byte = tl.load(x_ptr + row * cols + column, mask=column < cols, other=0).to(tl.uint32)
    tl.store(out_ptr + row * cols + column, decode(byte) * tl.load(scale_ptr + row), mask=column < cols)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, scale):
        byte = x.contiguous().view(torch.uint8)
        rows, cols = byte.shape
        out = scale.new_empty((rows, cols))
        dequantise_kernel[(rows, triton.cdiv(cols, 128))](byte, scale, out, cols, BLOCK=128)
        return out
