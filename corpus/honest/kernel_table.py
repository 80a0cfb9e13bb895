"""Two variants of a kernel in a table, one for few columns and one for many."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    mask = column < cols
    x = tl.load(x_ptr + row * cols + column, mask=mask)
    y = x * tl.load(weight_ptr + column, mask=mask) + tl.load(bias_ptr + column, mask=mask)
    tl.store(out_ptr + row * cols + column, tl.maximum(y, 0.0), mask=mask)


@triton.jit
def affine_relu_kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, size, cols, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < size
    column = i % cols
    x = tl.load(x_ptr + i, mask=mask, other=0.0)
    weight = tl.load(weight_ptr + column, mask=mask, other=0.0)
    bias = tl.load(bias_ptr + column, mask=mask, other=0.0)
    tl.store(out_ptr + i, tl.maximum(x * weight + bias, 0.0), mask=mask)


def launch_rows(x, weight, bias, out):
    rows, cols = x.shape
    row_kernel[(rows,)](x, weight, bias, out, cols, BLOCK=triton.next_power_of_2(cols))


def launch_flat(x, weight, bias, out):
    affine_relu_kernel[(triton.cdiv(x.numel(), 256),)](x, weight, bias, out, x.numel(), x.shape[-1], BLOCK=256)


LAUNCHERS = {"rows": launch_rows, "flat": launch_flat}


def choose(cols):
    return "rows" if cols > 64 else "flat"


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(cols))
        self.bias = nn.Parameter(torch.zeros(cols))

    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        LAUNCHERS[choose(x.shape[-1])](x, self.weight, self.bias, out)
        return out
