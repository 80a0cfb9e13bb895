"""Defines the sizes, get_inputs and get_init_inputs of a problem, as files for a shared namespace do; its own names only."""

import torch
import torch.nn as nn
import triton
import triton.language as tl

ROWS, COLS = 1, 1
batch_size = 1


def get_inputs():
    return [torch.zeros(ROWS, COLS)]


def get_init_inputs():
    return []


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


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return softmax(x)
