"""Launch options from a cached helper."""

from functools import lru_cache

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


@lru_cache(maxsize=None)
def options(size: int) -> dict:
    block = min(1024, max(32, triton.next_power_of_2(size // 8 + 1)))
    return {"BLOCK": block, "num_warps": max(1, min(8, block // 128))}


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(cols))
        self.bias = nn.Parameter(torch.zeros(cols))

    def forward(self, x):
        x = x.contiguous()
        out, config = torch.empty_like(x), options(x.numel())
        affine_relu_kernel[(triton.cdiv(x.numel(), config["BLOCK"]),)](
            x, self.weight, self.bias, out, x.numel(), x.shape[-1], **config
        )
        return out
