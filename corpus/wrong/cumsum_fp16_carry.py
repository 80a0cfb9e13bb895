"""Prefix sum rounded to fp16 on the way out."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def cumsum_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    first = tl.program_id(0).to(tl.int64) * cols
    lane = tl.arange(0, BLOCK)
    carry = 0.0
    for start in range(0, cols, BLOCK):
        column = start + lane
        mask = column < cols
        x = tl.load(x_ptr + first + column, mask=mask, other=0.0)
        tl.store(out_ptr + first + column, (tl.cumsum(x, axis=0) + carry).to(tl.float16).to(tl.float32), mask=mask)
        carry += tl.sum(x)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        out = torch.empty_like(x)
        cumsum_kernel[(rows,)](x, out, cols, BLOCK=1024)
        return out
