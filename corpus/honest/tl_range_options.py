"""Loops with hints for the pipeliner."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_sum_kernel(x_ptr, out_ptr, rows, cols, BLOCK: tl.constexpr):
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), flatten=True):
        total = tl.zeros((BLOCK,), dtype=tl.float32)
        for start in tl.range(0, cols, BLOCK, num_stages=3, loop_unroll_factor=2, disallow_acc_multi_buffer=True):
            column = start + tl.arange(0, BLOCK)
            total += tl.load(x_ptr + row * cols + column, mask=column < cols, other=0.0)
        tl.store(out_ptr + row, tl.sum(total))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        out = torch.empty(rows, dtype=x.dtype, device=x.device)
        row_sum_kernel[(min(rows, 16),)](x, out, rows, cols, BLOCK=256)
        return out
