"""An autotuned kernel for large inputs; for small ones its inner kernel with fixed options."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.autotune(
    configs=[triton.Config({"BLOCK": b}, num_warps=w) for b, w in ((256, 4), (1024, 8))], key=["size"], warmup=5, rep=20
)
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
        x = x.contiguous()
        out = torch.empty_like(x)
        arguments = (x, self.weight, self.bias, out, x.numel(), x.shape[-1])
        if x.numel() < 4096:
            affine_relu_kernel.fn[(triton.cdiv(x.numel(), 128),)](*arguments, BLOCK=128, num_warps=2)
        else:
            affine_relu_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](*arguments)
        return out
