"""Other ways to import the same things. The star comes first: it brings a `math`, a `reduce` and a `cdiv` of its own."""

from triton.language import *  # noqa: F403, I001

import itertools
import math
import operator
from functools import reduce

import triton
from torch import Tensor, empty_like, nn
from torch import ones as one_vector
from torch import zeros as zero_vector
from torch.nn import Module, Parameter
from triton import cdiv, jit
from triton import language as tl
from triton.language import arange, constexpr, program_id


@jit
def affine_relu_kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, size, cols, BLOCK: constexpr):
    i = program_id(0) * BLOCK + arange(0, BLOCK)
    mask = i < size
    x = load(x_ptr + i, mask=mask)  # noqa: F405
    y = x * tl.load(weight_ptr + i % cols, mask=mask) + tl.load(bias_ptr + i % cols, mask=mask)
    store(out_ptr + i, maximum(y, 0.0), mask=mask)  # noqa: F405


class ModelNew(Module):
    def __init__(self, cols: int) -> None:
        super().__init__()
        self.weight, self.bias = Parameter(one_vector(cols)), nn.Parameter(zero_vector(cols))

    def forward(self, x: Tensor) -> Tensor:
        x = x.contiguous()
        size = math.prod(x.shape)
        assert size == reduce(operator.mul, x.shape, 1) == list(itertools.accumulate(x.shape, operator.mul))[-1]
        out = empty_like(x)
        affine_relu_kernel[(cdiv(size, 256), 1, 1)](x, self.weight, self.bias, out, size, x.size(-1), BLOCK=256)
        return out
