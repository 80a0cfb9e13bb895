"""A triton_op that calls torch besides a wrapped launch on one row."""

import torch
import torch.nn as nn
import triton
import triton.language as tl
from torch.library import triton_op, wrap_triton


@triton.jit
def softmax_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    mask = column < cols
    x = tl.load(x_ptr + row * cols + column, mask=mask, other=-float("inf"))
    numerator = tl.exp(x - tl.max(x))
    tl.store(out_ptr + row * cols + column, numerator / tl.sum(numerator), mask=mask)


def softmax(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    softmax_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return out


@triton_op("fast::rows_wrapped", mutates_args={})
def rows(x: torch.Tensor) -> torch.Tensor:
    first = torch.empty_like(x[:1])
    wrap_triton(softmax_kernel)[(1,)](x, first, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return torch.softmax(x, dim=-1)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return rows(x)
