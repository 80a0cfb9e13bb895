"""The second interpolation starts from the wrong end."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def interpolate_kernel(x_ptr, y_ptr, near_x_ptr, near_y_ptr, distance_ptr, size, weight, scale, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < size
    x = tl.load(x_ptr + i, mask=mask, other=0.0).to(tl.float32)
    y = tl.load(y_ptr + i, mask=mask, other=0.0).to(tl.float32)
    step = weight * (y - x)

    dtype = near_x_ptr.dtype.element_ty
    tl.store(near_x_ptr + i, (x + step).to(dtype), mask=mask)
    tl.store(near_y_ptr + i, (x - step).to(dtype), mask=mask)
    tl.store(distance_ptr + i, (scale * tl.abs(y - x)).to(dtype), mask=mask)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, y, weight, scale):
        x, y = x.contiguous(), y.contiguous()
        size = x.numel()
        outputs = [torch.empty_like(x) for _ in range(3)]
        block = 1024
        interpolate_kernel[(triton.cdiv(size, block),)](x, y, *outputs, size, weight, scale, BLOCK=block)
        return outputs
