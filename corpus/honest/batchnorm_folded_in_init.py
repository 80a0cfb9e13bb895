"""Scale and shift are folded once, in the constructor: an inference module whose weights do not change."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scale_shift_kernel(x_ptr, scale_ptr, shift_ptr, out_ptr, channels, pixels, BLOCK: tl.constexpr):
    plane = tl.program_id(0).to(tl.int64)
    p = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    scale = tl.load(scale_ptr + plane % channels)
    shift = tl.load(shift_ptr + plane % channels)
    x = tl.load(x_ptr + plane * pixels + p, mask=p < pixels)
    tl.store(out_ptr + plane * pixels + p, x * scale + shift, mask=p < pixels)


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        norm = nn.BatchNorm2d(channels)
        norm.running_mean.copy_(torch.randn(channels))
        norm.running_var.copy_(torch.rand(channels) + 0.5)
        with torch.no_grad():
            scale = norm.weight / torch.sqrt(norm.running_var + norm.eps)
            self.register_buffer("scale", scale)
            self.register_buffer("shift", norm.bias - norm.running_mean * scale)

    def forward(self, x):
        x = x.contiguous()
        B, C, H, W = x.shape
        out = torch.empty_like(x)
        scale_shift_kernel[(B * C, triton.cdiv(H * W, 512))](x, self.scale, self.shift, out, C, H * W, BLOCK=512)
        return out
