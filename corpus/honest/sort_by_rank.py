"""Each element counts those before it, and is stored at that place."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def rank_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr, CHUNK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * cols
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + column, mask=column < cols, other=0.0)
    rank = tl.zeros((BLOCK,), dtype=tl.int32)
    for start in range(0, cols, CHUNK):
        other = start + tl.arange(0, CHUNK)
        y = tl.load(x_ptr + other, mask=other < cols, other=float("inf"))
        before = (y[None, :] < x[:, None]) | ((y[None, :] == x[:, None]) & (other[None, :] < column[:, None]))
        rank += tl.sum((before & (other[None, :] < cols)).to(tl.int32), axis=1)
    tl.store(out_ptr + row * cols + rank, x, mask=column < cols)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        out = torch.empty_like(x)
        rank_kernel[(rows, triton.cdiv(cols, 64))](x, out, cols, BLOCK=64, CHUNK=64)
        return out
