"""Kernels of the tests of `tilewright.emulate`."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    total = tl.load(x_ptr + offsets, mask=mask) + tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, total, mask=mask)


@triton.jit
def copy_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    tl.store(out_ptr + offsets, x)


@triton.jit
def race_kernel(out_ptr, BLOCK: tl.constexpr):
    tl.store(out_ptr + tl.arange(0, BLOCK), tl.program_id(0))


@triton.jit
def decide_kernel(flag_ptr, out_ptr):
    if tl.load(flag_ptr) > 0:
        tl.store(out_ptr, 1.0)


@triton.jit
def clock_kernel(out_ptr):
    now = tl.inline_asm_elementwise("mov.u32 $0, %clock;", "=r", [], dtype=tl.int32, is_pure=False, pack=1)
    tl.store(out_ptr, now)


@triton.jit
def transpose_kernel(x_ptr, out_ptr, x_row, x_column, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    rows, columns = tl.arange(0, ROWS)[:, None], tl.arange(0, COLUMNS)[None, :]
    x = tl.load(x_ptr + rows * x_row + columns * x_column)
    tl.store(out_ptr + columns * ROWS + rows, x)


@triton.jit
def cast_kernel(x_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out_ptr + at, tl.load(x_ptr + at).to(tl.float32))


@triton.jit
def descriptor_kernel(x, out, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK
    out.store([row, 0], x.load([row, 0]) * 2.0)


@triton.jit
def options_kernel(x_ptr, bias_ptr, scales, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    x = tl.load(x_ptr + at) * scales[0] + scales[1]
    if bias_ptr is not None:
        x += tl.load(bias_ptr + at)
    tl.store(out_ptr + at, x)


@triton.jit
def count_kernel(count_ptr, N: tl.constexpr):
    tl.atomic_add(count_ptr + tl.arange(0, N), 1)


@triton.jit
def gather_kernel(addresses_ptr, extra, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    source = tl.load(addresses_ptr + tl.program_id(0)).to(tl.pointer_type(tl.float32))
    extra = extra.to(tl.pointer_type(tl.float32))
    tl.store(out_ptr + tl.program_id(0) * N + at, tl.load(source + at) + tl.load(extra + at))
