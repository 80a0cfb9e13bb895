"""Statistics by torch.var_mean, the multiply-add by Triton: most of the work is torch's."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def affine_kernel(x_ptr, mean_ptr, var_ptr, w_ptr, b_ptr, out_ptr, width, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < width
    x = tl.load(x_ptr + row * width + column, mask=mask)
    rstd = tl.rsqrt(tl.load(var_ptr + row) + eps)
    w = tl.load(w_ptr + column, mask=mask)
    y = (x - tl.load(mean_ptr + row)) * rstd * w + tl.load(b_ptr + column, mask=mask)
    tl.store(out_ptr + row * width + column, y, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        variance, mean = torch.var_mean(x, dim=-1, correction=0)
        out = torch.empty_like(x)
        block = triton.next_power_of_2(x.shape[1])
        affine_kernel[(x.shape[0],)](
            x, mean, variance, self.norm.weight, self.norm.bias, out, x.shape[1], self.norm.eps, BLOCK=block
        )
        return out
