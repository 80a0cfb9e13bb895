"""The activation as an IntEnum that the kernel takes as a constexpr."""

from enum import Enum, IntEnum

import torch
import torch.nn as nn
import triton
import triton.language as tl


class Activation(IntEnum):
    NONE = 0
    RELU = 1


class Size(Enum):
    SMALL = "small"
    LARGE = "large"


BLOCKS = {Size.SMALL: 128, Size.LARGE: 1024}


@triton.jit
def affine_kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, size, cols, ACTIVATION: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < size
    y = tl.load(x_ptr + i, mask=mask) * tl.load(weight_ptr + i % cols, mask=mask)
    y += tl.load(bias_ptr + i % cols, mask=mask)
    if ACTIVATION == 1:
        y = tl.maximum(y, 0.0)
    tl.store(out_ptr + i, y, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(cols))
        self.bias = nn.Parameter(torch.zeros(cols))

    def forward(self, x):
        x = x.contiguous()
        out, size = torch.empty_like(x), x.numel()
        block = BLOCKS[Size.SMALL if size < 1000 else Size.LARGE]
        affine_kernel[(triton.cdiv(size, block),)](
            x, self.weight, self.bias, out, size, x.shape[-1], ACTIVATION=int(Activation.RELU), BLOCK=block
        )
        return out
