"""Value and position in one 64-bit key: the maximum of the keys finds the first of the largest."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def key_kernel(x_ptr, key_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    # -0.0 equals 0.0: adding 0.0 makes it so in bits too.
    x = tl.load(x_ptr + row * cols + column, mask=column < cols, other=-float("inf")) + 0.0
    bits = x.to(tl.int32, bitcast=True)
    ordered = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits).to(tl.int64)
    key = (ordered << 32) | (0xFFFFFFFF - column.to(tl.int64))
    tl.atomic_max(key_ptr + row, tl.max(tl.where(column < cols, key, -(1 << 62) * 2)))


@triton.jit
def index_kernel(key_ptr, out_ptr, rows, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    key = tl.load(key_ptr + row, mask=row < rows, other=0)
    tl.store(out_ptr + row, 0xFFFFFFFF - (key & 0xFFFFFFFF), mask=row < rows)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        keys = torch.full((rows,), torch.iinfo(torch.int64).min, dtype=torch.int64, device=x.device)
        out = torch.empty(rows, dtype=torch.int64, device=x.device)
        key_kernel[(rows, triton.cdiv(cols, 256))](x, keys, cols, BLOCK=256)
        index_kernel[(triton.cdiv(rows, 64),)](keys, out, rows, BLOCK=64)
        return out
