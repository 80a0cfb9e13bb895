"""1 / sqrt by the famous bit trick and three Newton steps, which reach float32's precision."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def reciprocal_root(x):
    y = (0x5F3759DF - (x.to(tl.int32, bitcast=True) >> 1)).to(tl.float32, bitcast=True)
    for _ in tl.static_range(3):
        y = y * (1.5 - 0.5 * x * y * y)
    return y


@triton.jit
def layernorm_kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, width, eps, BLOCK: tl.constexpr):
    token = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    mask = column < width
    x = tl.load(x_ptr + token * width + column, mask=mask, other=0.0)
    centred = tl.where(mask, x - tl.sum(x) / width, 0.0)
    y = centred * reciprocal_root(tl.sum(centred * centred) / width + eps)
    y = y * tl.load(weight_ptr + column, mask=mask) + tl.load(bias_ptr + column, mask=mask)
    tl.store(out_ptr + token * width + column, y, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        x = x.contiguous()
        tokens, width = x.shape
        out = torch.empty_like(x)
        layernorm_kernel[(tokens,)](
            x, self.norm.weight, self.norm.bias, out, width, self.norm.eps, BLOCK=triton.next_power_of_2(width)
        )
        return out
