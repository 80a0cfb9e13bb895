"""Initialisation by layer type, as language models do it; the layers are boxes or unused."""

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


class Affine(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(cols))
        self.bias = nn.Parameter(torch.empty(cols))


class ModelNew(Affine):
    def __init__(self, cols):
        super().__init__(cols)
        self.apply(self._init_weights)
        for name, parameter in self.named_parameters():
            if name.endswith("bias"):
                nn.init.normal_(parameter, std=1.0)

    def _init_weights(self, module):
        if isinstance(module, (nn.Linear, nn.Conv2d)):
            nn.init.trunc_normal_(module.weight, std=0.02)
        elif isinstance(module, nn.Embedding):
            module.weight.data.normal_(mean=0.0, std=0.02)
        elif isinstance(module, Affine):
            with torch.no_grad():
                module.weight.fill_(1.0)

    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        grid = (triton.cdiv(x.numel(), 512),)
        affine_relu_kernel[grid](x, self.weight, self.bias, out, x.numel(), x.shape[-1], BLOCK=512)
        return out
