"""Arguments are checked before they are used."""

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

    def check(self, x):
        if not torch.is_tensor(x):
            raise TypeError(f"expected a tensor, got {type(x).__name__}")
        if x.dtype != self.weight.dtype:
            raise TypeError(f"expected {self.weight.dtype}, got {x.dtype}")
        if x.ndim != 2 or x.size(1) != self.weight.numel():
            raise ValueError(f"expected (*, {self.weight.numel()}), got {tuple(x.shape)} with strides {x.stride()}")
        if x.layout is not torch.strided or x.is_sparse or x.is_complex():
            raise ValueError("expected a dense real tensor")
        torch._assert(x.is_floating_point(), "expected floating point")
        torch._check(x.size(0) >= 0, lambda: "negative size")

    def forward(self, x):
        self.check(x)
        x = x.contiguous()
        out = torch.empty_like(x)
        grid = (triton.cdiv(x.numel(), 512),)
        affine_relu_kernel[grid](x, self.weight, self.bias, out, x.numel(), x.shape[-1], BLOCK=512)
        return out
