"""Softmax of wide rows in blocks."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * cols
    top = tl.full((BLOCK,), -float("inf"), tl.float32)
    for start in range(0, cols, BLOCK):
        column = start + tl.arange(0, BLOCK)
        top = tl.maximum(top, tl.load(x_ptr + row + column, mask=column < cols, other=-float("inf")))
    peak = tl.max(top)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, cols, BLOCK):
        column = start + tl.arange(0, BLOCK)
        total += tl.exp(tl.load(x_ptr + row + column, mask=column < cols, other=-float("inf")) - peak)
    scale = 1.0 / tl.sum(total)
    for start in range(0, cols, BLOCK):
        column = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row + column, mask=column < cols)
        tl.store(out_ptr + row + column, tl.exp(x - peak) * scale, mask=column < cols)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        out = torch.empty_like(x)
        softmax_kernel[(rows,)](x, out, cols, BLOCK=4096, num_warps=8)
        return out
