"""Layer norm with the unbiased variance."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def layernorm_kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, width, eps, BLOCK: tl.constexpr):
    token = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    mask = column < width

    x = tl.load(x_ptr + token * width + column, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x) / width
    centred = tl.where(mask, x - mean, 0.0)
    rstd = tl.rsqrt(tl.sum(centred * centred) / (width - 1) + eps)

    weight = tl.load(weight_ptr + column, mask=mask, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + column, mask=mask, other=0.0).to(tl.float32)
    out = centred * rstd * weight + bias
    tl.store(out_ptr + token * width + column, out.to(out_ptr.dtype.element_ty), mask=mask)


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        x = x.contiguous()
        tokens, width = x.shape
        out = torch.empty_like(x)
        block = triton.next_power_of_2(width)
        num_warps = min(max(block // 256, 1), 16)
        layernorm_kernel[(tokens,)](
            x, self.norm.weight, self.norm.bias, out, width, self.norm.eps, BLOCK=block, num_warps=num_warps
        )
        return out
