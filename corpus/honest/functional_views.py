"""Views through the functions of torch instead of the methods of tensors."""

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
        x = torch.transpose(torch.permute(x, (1, 0)), 0, 1).contiguous()
        x = torch.squeeze(torch.unsqueeze(torch.reshape(x, (-1, x.size(1))), 0), 0)
        out = torch.empty_strided(x.size(), x.stride(), dtype=x.dtype, device=x.device)
        weight = torch.select(torch.broadcast_to(self.weight, (2, *self.weight.shape)), 0, 1)
        parts = zip(torch.split(x, 24), torch.split(out, 24), strict=True)
        for source, target in parts:
            affine_relu_kernel[(triton.cdiv(source.numel(), 512),)](
                source, weight, self.bias, target, source.numel(), x.shape[1], BLOCK=512
            )
        first, *rest = torch.unbind(torch.narrow(out, 0, 0, out.size(0)))
        assert first.data_ptr() == out.data_ptr() and len(rest) == len(out) - 1
        return torch.flatten(out).view(*x.shape)
