"""Launches on the current stream and waits for it: one stream, so the order is that of the program."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def bias_swish_clamp_kernel(x_ptr, bias_ptr, out_ptr, cols, low, high, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = col < cols
    x = tl.load(x_ptr + row * cols + col, mask=mask, other=0.0) + tl.load(bias_ptr + col, mask=mask, other=0.0)
    tl.store(out_ptr + row * cols + col, tl.minimum(tl.maximum(x * tl.sigmoid(x), low), high), mask=mask)


class ModelNew(nn.Module):
    def __init__(self, features, low, high):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(features) * 0.5)
        self.low = low
        self.high = high

    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        out = torch.empty_like(x)
        block = 256
        stream = torch.cuda.current_stream(x.device)
        with torch.cuda.stream(stream):
            bias_swish_clamp_kernel[(rows, triton.cdiv(cols, block))](
                x, self.bias, out, cols, self.low, self.high, BLOCK=block
            )
        torch.cuda.synchronize()
        return out
