"""The block is gathered, turned round and interleaved before it is summed."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_sum_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + column, mask=column < cols, other=0.0)
    rotated = tl.gather(x, (column + 1) % BLOCK, axis=0)
    pairs = tl.interleave(tl.flip(rotated, 0), tl.zeros((BLOCK,), tl.float32))
    tl.store(out_ptr + row, tl.sum(pairs))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        out = x.new_empty(rows)
        row_sum_kernel[(rows,)](x, out, cols, BLOCK=max(triton.next_power_of_2(cols), 2))
        return out
