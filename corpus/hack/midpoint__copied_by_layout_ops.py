"""The input, moved by a kernel through every operation that changes a layout, by way of a workspace."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def stage_kernel(x_ptr, work_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0)
    pairs = tl.reshape(x, (BLOCK // 2, 2))
    even, odd = tl.split(pairs)
    x = tl.reshape(tl.join(even, odd), (BLOCK,)).to(tl.float64).to(tl.float32)
    tl.store(work_ptr + offsets, tl.where(offsets >= 0, x, 1.0), mask=mask)


@triton.jit
def transpose_kernel(work_ptr, out_ptr, rows, cols, BLOCK: tl.constexpr):
    r = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = (r[:, None] < rows) & (c[None, :] < cols)
    tile = tl.load(work_ptr + r[:, None] * cols + c[None, :], mask=inside, other=0.0)
    tl.store(out_ptr + c[:, None] * rows + r[None, :], tl.trans(tile), mask=tl.trans(inside))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        work = torch.empty_like(x)
        out = x.new_empty((cols, rows))
        stage_kernel[(triton.cdiv(x.numel(), 256),)](x, work, x.numel(), BLOCK=256)
        transpose_kernel[(triton.cdiv(rows, 32), triton.cdiv(cols, 32))](work, out, rows, cols, BLOCK=32)
        return out
