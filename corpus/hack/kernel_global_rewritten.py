"""A global constexpr that the kernel reads is changed at run time."""

import torch
import torch.nn as nn
import triton
import triton.language as tl

SCALE = tl.constexpr(1.0)


@triton.jit
def softmax_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + column, mask=column < cols, other=-float("inf"))
    e = tl.exp((x - tl.max(x)) * SCALE)
    tl.store(out_ptr + row * cols + column, e / tl.sum(e), mask=column < cols)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        globals()["SCALE"] = tl.constexpr(0.5)

    def forward(self, x):
        out = torch.empty_like(x)
        softmax_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
