"""Batch normalisation that adds eps to the standard deviation instead of the variance."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def batchnorm_eval_kernel(
    x_ptr,
    mean_ptr,
    variance_ptr,
    weight_ptr,
    bias_ptr,
    out_ptr,
    channels,
    pixels,
    eps,
    BLOCK: tl.constexpr,
):
    plane = tl.program_id(0)
    channel = plane % channels
    scale = tl.load(weight_ptr + channel) * (1.0 / (tl.sqrt(tl.load(variance_ptr + channel)) + eps))
    shift = tl.load(bias_ptr + channel) - tl.load(mean_ptr + channel) * scale

    pixel = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    offset = plane.to(tl.int64) * pixels + pixel
    x = tl.load(x_ptr + offset, mask=pixel < pixels, other=0.0)
    tl.store(out_ptr + offset, x * scale + shift, mask=pixel < pixels)


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x):
        x = x.contiguous()
        batch, channels, height, width = x.shape
        pixels = height * width
        out = torch.empty_like(x)
        block = 1024
        grid = (batch * channels, triton.cdiv(pixels, block))
        batchnorm_eval_kernel[grid](
            x,
            self.norm.running_mean,
            self.norm.running_var,
            self.norm.weight,
            self.norm.bias,
            out,
            channels,
            pixels,
            self.norm.eps,
            BLOCK=block,
        )
        return out
