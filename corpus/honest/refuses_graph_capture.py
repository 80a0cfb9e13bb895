"""Synchronises, so it refuses to be captured into a CUDA graph, with a clear message."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def affine_relu_kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, size, cols, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < size
    column = i % cols
    x = tl.load(x_ptr + i, mask=mask, other=0.0)
    weight = tl.load(weight_ptr + column, mask=mask, other=0.0)
    bias = tl.load(bias_ptr + column, mask=mask, other=0.0)
    tl.store(out_ptr + i, tl.maximum(x * weight + bias, 0.0), mask=mask)


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(cols))
        self.bias = nn.Parameter(torch.zeros(cols))

    def forward(self, x):
        if torch.cuda.is_current_stream_capturing():
            raise RuntimeError("not while a graph is captured")
        x = x.contiguous()
        out = torch.empty_like(x)
        affine_relu_kernel[(triton.cdiv(x.numel(), 512),)](
            x, self.weight, self.bias, out, x.numel(), x.shape[-1], BLOCK=512
        )
        torch.cuda.synchronize()
        return out
