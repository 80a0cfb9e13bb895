"""Three slices of one allocation, returned as a list."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def interpolate_kernel(x_ptr, y_ptr, out_ptr, size, weight, scale, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < size
    x = tl.load(x_ptr + i, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + i, mask=mask).to(tl.float32)
    for part in tl.static_range(3):
        if part == 0:
            value = x + weight * (y - x)
        elif part == 1:
            value = y + weight * (x - y)
        else:
            value = scale * tl.abs(y - x)
        tl.store(out_ptr + part * size + i, value.to(tl.float16), mask=mask)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, y, weight, scale):
        out = x.new_empty((3, *x.shape))
        size = x.numel()
        interpolate_kernel[(triton.cdiv(size, 1024),)](
            x.contiguous(), y.contiguous(), out, size, float(weight), float(scale), BLOCK=1024
        )
        return list(out)
