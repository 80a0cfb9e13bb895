"""Host code that reads `best_config` after an autotuned launch to know how much of a workspace it filled."""

import torch
import torch.nn as nn
import triton
import triton.language as tl

SMALLEST_CHUNK = 64


@triton.autotune(
    configs=[triton.Config({"CHUNK": SMALLEST_CHUNK}, num_warps=2), triton.Config({"CHUNK": 256}, num_warps=8)],
    key=["rows", "cols"],
)
@triton.jit
def chunk_sum_kernel(x_ptr, partial_ptr, rows, cols, CHUNK: tl.constexpr, BLOCK_COLS: tl.constexpr):
    chunk = tl.program_id(0)
    row = chunk * CHUNK + tl.arange(0, CHUNK)
    col = tl.program_id(1) * BLOCK_COLS + tl.arange(0, BLOCK_COLS)
    mask = (row[:, None] < rows) & (col[None, :] < cols)
    x = tl.load(x_ptr + row[:, None].to(tl.int64) * cols + col[None, :], mask=mask, other=0.0)
    tl.store(partial_ptr + chunk.to(tl.int64) * cols + col, tl.sum(x, axis=0), mask=col < cols)


@triton.jit
def pair_sum_kernel(partial_ptr, compact_ptr, chunks, cols, BLOCK_COLS: tl.constexpr):
    """Adds pairs of chunks into a workspace of half the size."""
    pair = tl.program_id(0).to(tl.int64)
    col = tl.program_id(1) * BLOCK_COLS + tl.arange(0, BLOCK_COLS)
    mask = col < cols
    total = tl.load(partial_ptr + 2 * pair * cols + col, mask=mask, other=0.0)
    second = mask & (2 * pair + 1 < chunks)
    total += tl.load(partial_ptr + (2 * pair + 1) * cols + col, mask=second, other=0.0)
    tl.store(compact_ptr + pair * cols + col, total, mask=mask)


@triton.jit
def finish_mean_kernel(partial_ptr, out_ptr, chunks, rows, cols, BLOCK_COLS: tl.constexpr):
    col = tl.program_id(0) * BLOCK_COLS + tl.arange(0, BLOCK_COLS)
    total = tl.zeros((BLOCK_COLS,), dtype=tl.float32)
    partial_ptrs = partial_ptr + col
    for _ in range(chunks):
        total += tl.load(partial_ptrs, mask=col < cols, other=0.0)
        partial_ptrs += cols
    tl.store(out_ptr + col, total / rows, mask=col < cols)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        block_cols = 64
        col_blocks = triton.cdiv(cols, block_cols)
        # The winner is not known yet: room for the one with the most chunks.
        partial = torch.empty((triton.cdiv(rows, SMALLEST_CHUNK), cols), dtype=torch.float32, device=x.device)
        chunk_sum_kernel[lambda meta: (triton.cdiv(rows, meta["CHUNK"]), col_blocks)](
            x, partial, rows, cols, BLOCK_COLS=block_cols
        )
        # The winner is known now, and with it the size of what follows.
        chunks = triton.cdiv(rows, chunk_sum_kernel.best_config.kwargs["CHUNK"])
        pairs = triton.cdiv(chunks, 2)
        compact = torch.empty((pairs, cols), dtype=torch.float32, device=x.device)
        pair_sum_kernel[(pairs, col_blocks)](partial, compact, chunks, cols, BLOCK_COLS=block_cols)
        out = torch.empty(cols, dtype=x.dtype, device=x.device)
        finish_mean_kernel[(col_blocks,)](compact, out, pairs, rows, cols, BLOCK_COLS=block_cols)
        return out
