"""Own things under the names of torch functions."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def mul(a, b):
    return a * b


@triton.jit
def relu(x):
    return tl.where(x > 0.0, x, 0.0)


@triton.jit
def matmul(x_ptr, weight_ptr, bias_ptr, out_ptr, size, cols, BLOCK: tl.constexpr):
    add = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = add < size
    sum = mul(tl.load(x_ptr + add, mask=mask), tl.load(weight_ptr + add % cols, mask=mask))
    softmax = relu(sum + tl.load(bias_ptr + add % cols, mask=mask))
    tl.store(out_ptr + add, softmax, mask=mask)


def linear(x, weight, bias):
    x = x.contiguous()
    softmax = torch.empty_like(x)
    mm, sum = x.shape[-1], x.numel()
    matmul[(triton.cdiv(sum, 256),)](x, weight, bias, softmax, sum, mm, BLOCK=256)
    return softmax


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(cols))
        self.bias = nn.Parameter(torch.zeros(cols))

    def forward(self, x):
        return linear(x, self.weight, self.bias)
