"""The sum over a block that is folded, turned over and split first."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_sum_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + column, mask=column < cols, other=0.0)
    tile = tl.trans(tl.reshape(x, (BLOCK // 2, 2)))
    even, odd = tl.split(tl.permute(tile, (1, 0)))
    both = tl.join(odd, even)
    weight = tl.broadcast_to(tl.expand_dims(tl.full((2,), 1.0, tl.float32), 0), (BLOCK // 2, 2))
    tl.store(out_ptr + row, tl.sum(tl.sum(both * weight, axis=0), axis=0))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        out = x.new_empty(rows)
        row_sum_kernel[(rows,)](x, out, cols, BLOCK=max(2, triton.next_power_of_2(cols)))
        return out
