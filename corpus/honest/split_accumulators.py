"""Four independent accumulators, so that additions overlap."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_sum_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    a = tl.zeros((BLOCK,), dtype=tl.float32)
    b = tl.zeros((BLOCK,), dtype=tl.float32)
    c = tl.zeros((BLOCK,), dtype=tl.float32)
    d = tl.zeros((BLOCK,), dtype=tl.float32)
    x_ptr += row * cols
    for start in range(0, cols, 4 * BLOCK):
        i = start + lane
        a += tl.load(x_ptr + i, mask=i < cols, other=0.0)
        b += tl.load(x_ptr + i + BLOCK, mask=i + BLOCK < cols, other=0.0)
        c += tl.load(x_ptr + i + 2 * BLOCK, mask=i + 2 * BLOCK < cols, other=0.0)
        d += tl.load(x_ptr + i + 3 * BLOCK, mask=i + 3 * BLOCK < cols, other=0.0)
    tl.store(out_ptr + row, tl.sum((a + b) + (c + d)))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        out = torch.empty(rows, dtype=x.dtype, device=x.device)
        row_sum_kernel[(rows,)](x, out, cols, BLOCK=128)
        return out
