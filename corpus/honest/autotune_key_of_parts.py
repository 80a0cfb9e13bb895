"""Softmax in four launches, each of which is tuned under a key of its own."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.autotune(
    configs=[triton.Config({"USED": 2, "BLOCK": 1024}, num_warps=4), triton.Config({"USED": 2, "BLOCK": 1024}, num_warps=8)],
    key=["cols", "part"])
@triton.jit
def softmax_kernel(x_ptr, out_ptr, cols, part, USED: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * 4 + part
    column = tl.arange(0, BLOCK)
    mask = column < cols
    x = tl.load(x_ptr + row * cols + column, mask=column < cols * USED // 2, other=-float("inf"))
    e = tl.exp(x - tl.max(x))
    tl.store(out_ptr + row * cols + column, e / tl.sum(e), mask=mask)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        out = torch.empty_like(x)
        for part in range(4):
            rows = (x.shape[0] - part + 3) // 4
            if rows > 0:
                softmax_kernel[(rows,)](x, out, x.shape[1], part)
        return out
