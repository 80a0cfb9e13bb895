"""Keeps the activations for a backward pass only when gradients are wanted: the mode is part of the signature."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def bias_swish_clamp_kernel(
    x_ptr, bias_ptr, out_ptr, swish_ptr, size, cols, low, high, KEEP: tl.constexpr, BLOCK: tl.constexpr
):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < size
    x = tl.load(x_ptr + i, mask=mask, other=0.0) + tl.load(bias_ptr + i % cols, mask=mask, other=0.0)
    swish = x * tl.sigmoid(x)
    if KEEP:
        tl.store(swish_ptr + i, swish, mask=mask)
    tl.store(out_ptr + i, tl.minimum(tl.maximum(swish, low), high), mask=mask)


class ModelNew(nn.Module):
    def __init__(self, features, low, high):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(features) * 0.5)
        self.low = low
        self.high = high

    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        keep = self.training and torch.is_grad_enabled() and self.bias.requires_grad
        # Without a backward pass the kernel gets no buffer at all.
        swish = torch.empty_like(x) if keep else None
        block = 1024
        bias_swish_clamp_kernel[(triton.cdiv(x.numel(), block),)](
            x, self.bias, out, swish, x.numel(), x.shape[1], self.low, self.high, KEEP=keep, BLOCK=block
        )
        return out
