"""`nn.LayerNorm` as a box for two parameters."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def layernorm_kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, width, eps, BLOCK: tl.constexpr):
    token = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    mask = column < width
    x = tl.load(x_ptr + token * width + column, mask=mask, other=0.0)
    centred = tl.where(mask, x - tl.sum(x) / width, 0.0)
    rstd = tl.rsqrt(tl.sum(centred * centred) / width + eps)
    y = centred * rstd * tl.load(weight_ptr + column, mask=mask) + tl.load(bias_ptr + column, mask=mask)
    tl.store(out_ptr + token * width + column, y, mask=mask)


def layernorm(x, weight, bias, eps):
    x = x.contiguous()
    width = x.shape[-1]
    out = torch.empty_like(x)
    layernorm_kernel[(x.numel() // width,)](x, weight, bias, out, width, eps, BLOCK=triton.next_power_of_2(width))
    return out


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm([width], eps=1e-5)

    def forward(self, x):
        weight, bias = self.norm.parameters()
        assert self.norm.normalized_shape == x.shape[-1:]
        return layernorm(x, weight, bias, self.norm.eps)
