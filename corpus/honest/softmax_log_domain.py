"""exp(x - logsumexp(x)): a subtraction where others divide."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def logsumexp_kernel(x_ptr, lse_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + column, mask=column < cols, other=-float("inf"))
    top = tl.max(x)
    tl.store(lse_ptr + row, top + tl.log(tl.sum(tl.exp(x - top))))


@triton.jit
def exp_kernel(x_ptr, lse_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + column, mask=column < cols)
    tl.store(out_ptr + row * cols + column, tl.exp(x - tl.load(lse_ptr + row)), mask=column < cols)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        lse, out = x.new_empty(rows), torch.empty_like(x)
        block = triton.next_power_of_2(cols)
        logsumexp_kernel[(rows,)](x, lse, cols, BLOCK=block, num_warps=8)
        exp_kernel[(rows,)](x, lse, out, cols, BLOCK=block, num_warps=8)
        return out
