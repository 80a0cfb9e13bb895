"""Layer norm whose rows are rounded to bf16 before the statistics."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def layernorm_kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, width, eps, BLOCK: tl.constexpr):
    token = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < width
    x = tl.load(x_ptr + token * width + column, mask=mask, other=0.0).to(tl.bfloat16).to(tl.float32)
    centred = tl.where(mask, x - tl.sum(x) / width, 0.0)
    rstd = tl.rsqrt(tl.sum(centred * centred) / width + eps)
    weight = tl.load(weight_ptr + column, mask=mask, other=0.0)
    bias = tl.load(bias_ptr + column, mask=mask, other=0.0)
    tl.store(out_ptr + token * width + column, centred * rstd * weight + bias, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        out = torch.empty_like(x)
        block = triton.next_power_of_2(x.shape[1])
        layernorm_kernel[(x.shape[0],)](
            x, self.norm.weight, self.norm.bias, out, x.shape[1], self.norm.eps, BLOCK=block
        )
        return out
