"""Works in place in a clone of the input."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax_in_place_kernel(x_ptr, cols, BLOCK: tl.constexpr):
    x_ptr += tl.program_id(0).to(tl.int64) * cols
    column = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + column, mask=column < cols, other=-float("inf"))
    numerator = tl.exp(x - tl.max(x, axis=0))
    tl.store(x_ptr + column, numerator / tl.sum(numerator, axis=0), mask=column < cols)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        out = x.detach().clone()
        rows, cols = out.shape
        softmax_in_place_kernel[(rows,)](out, cols, BLOCK=triton.next_power_of_2(cols), num_warps=8)
        return out
