"""Group norm whose padded lanes add mean squared to the variance."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def groupnorm_kernel(
    x_ptr, weight_ptr, bias_ptr, out_ptr, groups, channels_per_group, pixels, eps, BLOCK: tl.constexpr
):
    group = tl.program_id(0)
    span = channels_per_group * pixels
    first = group.to(tl.int64) * span
    first_channel = (group % groups) * channels_per_group
    lane = tl.arange(0, BLOCK)

    partial = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, span, BLOCK):
        i = start + lane
        partial += tl.load(x_ptr + first + i, mask=i < span, other=0.0)
    mean = tl.sum(partial) / span

    partial = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, span, BLOCK):
        i = start + lane
        x = tl.load(x_ptr + first + i, mask=i < span, other=0.0)
        deviation = x - mean
        partial += deviation * deviation
    rstd = tl.rsqrt(tl.sum(partial) / span + eps)

    for start in range(0, span, BLOCK):
        i = start + lane
        mask = i < span
        channel = first_channel + i // pixels
        weight = tl.load(weight_ptr + channel, mask=mask, other=0.0)
        bias = tl.load(bias_ptr + channel, mask=mask, other=0.0)
        x = tl.load(x_ptr + first + i, mask=mask, other=0.0)
        tl.store(out_ptr + first + i, (x - mean) * rstd * weight + bias, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, groups, channels):
        super().__init__()
        self.norm = nn.GroupNorm(groups, channels)

    def forward(self, x):
        x = x.contiguous()
        batch, channels, height, width = x.shape
        groups = self.norm.num_groups
        out = torch.empty_like(x)
        groupnorm_kernel[(batch * groups,)](
            x,
            self.norm.weight,
            self.norm.bias,
            out,
            groups,
            channels // groups,
            height * width,
            self.norm.eps,
            BLOCK=1024,
        )
        return out
