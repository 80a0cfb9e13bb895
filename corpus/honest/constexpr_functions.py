"""Constants of several kinds that the compiler folds."""

import torch
import torch.nn as nn
import triton
import triton.language as tl

BLOCK_SIZE = tl.constexpr(128)
UNROLL: tl.constexpr = tl.constexpr(2)


@triton.constexpr_function
def half(n):
    return n // 2


@triton.jit
def lanes(n: tl.constexpr):
    return tl.arange(0, n)


@triton.jit
def row_sum_kernel(x_ptr, out_ptr, cols, SKIP: "tl.constexpr" = False):
    WIDTH: tl.constexpr = BLOCK_SIZE * UNROLL
    HALF: tl.constexpr = half(WIDTH)
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((HALF,), dtype=tl.float32)
    for start in range(0, cols, WIDTH):
        for part in tl.static_range(UNROLL):
            column = start + part * HALF + lanes(HALF)
            total += tl.load(x_ptr + row * cols + column, mask=column < cols, other=0.0)
    tl.store(out_ptr + row, tl.sum(total))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        out = x.new_empty(rows)
        row_sum_kernel[(rows,)](x, out, cols)
        return out
