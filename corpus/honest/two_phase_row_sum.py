"""Partial sums of column blocks into a workspace, then their sums."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def partial_kernel(x_ptr, partial_ptr, cols, blocks, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    block = tl.program_id(1)
    column = block * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + column, mask=column < cols, other=0.0)
    tl.store(partial_ptr + row * blocks + block, tl.sum(x))


@triton.jit
def finish_kernel(partial_ptr, out_ptr, blocks, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    block = tl.arange(0, BLOCK)
    partial = tl.load(partial_ptr + row * blocks + block, mask=block < blocks, other=0.0)
    tl.store(out_ptr + row, tl.sum(partial))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        blocks = triton.cdiv(cols, 256)
        partial = torch.empty((rows, blocks), dtype=torch.float32, device=x.device)
        out = x.new_empty(rows)
        partial_kernel[(rows, blocks)](x, partial, cols, blocks, BLOCK=256)
        finish_kernel[(rows,)](partial, out, blocks, BLOCK=triton.next_power_of_2(blocks))
        return out
