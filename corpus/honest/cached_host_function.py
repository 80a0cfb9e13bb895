"""Host decisions behind `functools.cache`, keyed by numbers only, and a precision flag set at import."""

import functools

import torch
import torch.nn as nn
import triton
import triton.language as tl

# This file multiplies nothing in torch; the flag states what it would want.
torch.backends.cuda.matmul.allow_tf32 = False


@functools.cache
def launch_shape(cols):
    """Block and warps for a row: about eight elements a thread."""
    block = triton.next_power_of_2(cols)
    return block, min(max(block // 256, 1), 16)


@triton.jit
def softmax_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    mask = column < cols
    x = tl.load(x_ptr + row * cols + column, mask=mask, other=-float("inf"))
    numerator = tl.exp(x - tl.max(x))
    tl.store(out_ptr + row * cols + column, numerator / tl.sum(numerator), mask=mask)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        out = torch.empty_like(x)
        block, num_warps = launch_shape(cols)
        softmax_kernel[(rows,)](x, out, cols, BLOCK=block, num_warps=num_warps)
        return out
