"""Deterministic atomics: each row is scaled by its largest element and added up in 62-bit integers."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def peak_kernel(x_ptr, peak_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + column, mask=column < cols, other=0.0)
    tl.store(peak_ptr + row, tl.max(tl.abs(x)))


@triton.jit
def add_kernel(x_ptr, peak_ptr, total_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    peak = tl.maximum(tl.load(peak_ptr + row).to(tl.float64), 1e-300)
    x = tl.load(x_ptr + row * cols + column, mask=column < cols, other=0.0).to(tl.float64)
    # |x / peak| <= 1, so up to 2^16 columns stay below 2^62.
    fixed = (x / peak * 70368744177664.0).to(tl.int64)
    tl.atomic_add(total_ptr + row, tl.sum(fixed))


@triton.jit
def finish_kernel(total_ptr, peak_ptr, out_ptr, rows, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    peak = tl.load(peak_ptr + row, mask=row < rows).to(tl.float64)
    total = tl.load(total_ptr + row, mask=row < rows).to(tl.float64) / 70368744177664.0
    tl.store(out_ptr + row, (total * peak).to(tl.float32), mask=row < rows)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        peak, out = x.new_empty(rows), x.new_empty(rows)
        total = torch.zeros(rows, dtype=torch.int64, device=x.device)
        peak_kernel[(rows,)](x, peak, cols, BLOCK=triton.next_power_of_2(cols))
        add_kernel[(rows, triton.cdiv(cols, 256))](x, peak, total, cols, BLOCK=256)
        finish_kernel[(triton.cdiv(rows, 64),)](total, peak, out, rows, BLOCK=64)
        return out
