"""Constants from two places: a non-persistent buffer computed in `__init__`, and a literal tensor in `forward`."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def bias_swish_clamp_kernel(x_ptr, bias_ptr, ones_ptr, bounds_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = col < cols
    low = tl.load(bounds_ptr)
    high = tl.load(bounds_ptr + 1)
    bias = tl.load(bias_ptr + col, mask=mask, other=0.0) * tl.load(ones_ptr + col, mask=mask, other=0.0)
    x = tl.load(x_ptr + row * cols + col, mask=mask, other=0.0) + bias
    tl.store(out_ptr + row * cols + col, tl.minimum(tl.maximum(x * tl.sigmoid(x), low), high), mask=mask)


class ModelNew(nn.Module):
    def __init__(self, features, low, high):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(features) * 0.5)
        # cos(0) everywhere: a table that does not depend on any weight or seed, and is not in the state_dict.
        self.register_buffer("ones", torch.cos(torch.zeros(features)), persistent=False)
        self.low = low
        self.high = high

    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        out = torch.empty_like(x)
        bounds = torch.tensor([self.low, self.high], dtype=torch.float32, device=x.device)
        block = 512
        bias_swish_clamp_kernel[(rows, triton.cdiv(cols, block))](
            x, self.bias, self.ones, bounds, out, cols, BLOCK=block
        )
        return out
