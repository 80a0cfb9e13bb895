"""A constructor with more options than the problem uses."""

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
    def __init__(self, cols, *unused, block=256, dtype=torch.float32, device=None, **options):
        super().__init__()
        assert not unused and not options, f"unknown options {options}"
        factory = {"dtype": dtype, "device": device}
        self.weight = nn.Parameter(torch.empty(cols, **factory))
        self.bias = nn.Parameter(torch.empty(cols, **factory))
        self.block = block
        self.reset_parameters()

    def reset_parameters(self):
        nn.init.uniform_(self.weight, 0.5, 1.5)
        nn.init.normal_(self.bias)

    def forward(self, x, /, *, out=None):
        x = x.contiguous()
        out = torch.empty_like(x) if out is None else out
        affine_relu_kernel[(triton.cdiv(x.numel(), self.block),)](
            x, self.weight, self.bias, out, x.numel(), x.shape[-1], BLOCK=self.block
        )
        return out
