"""Scale and shift from weight, bias and running statistics by a small kernel, then one pass."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def fold_kernel(weight_ptr, bias_ptr, mean_ptr, var_ptr, scale_ptr, shift_ptr, channels, eps, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    mask = c < channels
    scale = tl.load(weight_ptr + c, mask=mask) * tl.rsqrt(tl.load(var_ptr + c, mask=mask, other=1.0) + eps)
    tl.store(scale_ptr + c, scale, mask=mask)
    tl.store(shift_ptr + c, tl.load(bias_ptr + c, mask=mask) - tl.load(mean_ptr + c, mask=mask) * scale, mask=mask)


@triton.jit
def scale_shift_kernel(x_ptr, scale_ptr, shift_ptr, out_ptr, channels, pixels, BLOCK: tl.constexpr):
    plane = tl.program_id(0)
    scale, shift = tl.load(scale_ptr + plane % channels), tl.load(shift_ptr + plane % channels)
    p = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + plane.to(tl.int64) * pixels + p, mask=p < pixels)
    tl.store(out_ptr + plane.to(tl.int64) * pixels + p, x * scale + shift, mask=p < pixels)


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)
        self.norm.running_mean.copy_(torch.randn(channels))
        self.norm.running_var.copy_(torch.rand(channels) + 0.5)

    def forward(self, x):
        x = x.contiguous()
        B, C, H, W = x.shape
        norm = self.norm
        scale, shift = torch.empty(2, C, dtype=x.dtype, device=x.device)
        fold_kernel[(1,)](
            norm.weight, norm.bias, norm.running_mean, norm.running_var, scale, shift, C, norm.eps,
            BLOCK=triton.next_power_of_2(C),
        )  # fmt: skip
        out = torch.empty_like(x)
        scale_shift_kernel[(B * C, triton.cdiv(H * W, 512))](x, scale, shift, out, C, H * W, BLOCK=512)
        return out
