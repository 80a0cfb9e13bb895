"""fp8 values loaded as they are."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def dequantise_kernel(x_ptr, scale_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + column, mask=column < cols, other=0.0)
    tl.store(out_ptr + row * cols + column, x.to(tl.float32) * tl.load(scale_ptr + row), mask=column < cols)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, scale):
        x = x.contiguous()
        rows, cols = x.shape
        out = torch.empty((rows, cols), dtype=torch.float32, device=x.device)
        dequantise_kernel[(rows, triton.cdiv(cols, 128))](x, scale, out, cols, BLOCK=128)
        return out
