"""Parameters registered in a loop, as configurable layers do."""

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
        for name, fill in {"weight": 1.0, "bias": 0.0}.items():
            self.register_parameter(name, nn.Parameter(torch.full((cols,), fill)))
        setattr(self, "block", 512)
        if not hasattr(self, "warps"):
            self.warps = 4

    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        affine_relu_kernel[(triton.cdiv(x.numel(), self.block),)](
            x, self.weight, self.bias, out, x.numel(), x.shape[-1], BLOCK=self.block, num_warps=self.warps
        )
        return out
