"""One pass over the row: moments about its first element."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def layernorm_kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, width, eps, BLOCK: tl.constexpr):
    x_ptr += tl.program_id(0).to(tl.int64) * width
    out_ptr += tl.program_id(0).to(tl.int64) * width
    shift = tl.load(x_ptr)
    first = tl.zeros((BLOCK,), tl.float32)
    second = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, width, BLOCK):
        column = start + tl.arange(0, BLOCK)
        d = tl.load(x_ptr + column, mask=column < width, other=0.0)
        d = tl.where(column < width, d - shift, 0.0)
        first += d
        second += d * d
    offset = tl.sum(first) / width
    variance = tl.maximum(tl.sum(second) / width - offset * offset, 0.0)
    rstd = 1.0 / tl.sqrt_rn(variance + eps)
    for start in range(0, width, BLOCK):
        column = start + tl.arange(0, BLOCK)
        mask = column < width
        y = (tl.load(x_ptr + column, mask=mask) - shift - offset) * rstd
        y = y * tl.load(weight_ptr + column, mask=mask) + tl.load(bias_ptr + column, mask=mask)
        tl.store(out_ptr + column, y, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        x = x.contiguous()
        tokens, width = x.shape
        out = torch.empty_like(x)
        layernorm_kernel[(tokens,)](x, self.norm.weight, self.norm.bias, out, width, self.norm.eps, BLOCK=256)
        return out
