"""`prune_configs_by` with a performance model: of four configurations only the two best estimates are tried."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


def estimated_time(x_ptr, out_ptr, rows, cols, BLOCK_ROWS, BLOCK_COLS, num_warps, **_):
    """Lanes that all programs launch, idle ones included, plus a fixed cost a program."""
    programs = triton.cdiv(rows, BLOCK_ROWS)
    return programs * (BLOCK_ROWS * BLOCK_COLS + 64 * num_warps)


@triton.autotune(
    configs=[triton.Config({"BLOCK_ROWS": rows}, num_warps=4) for rows in (1, 2, 4, 8)],
    key=["rows", "cols"],
    prune_configs_by={"perf_model": estimated_time, "top_k": 2},
)
@triton.jit
def softmax_kernel(x_ptr, out_ptr, rows, cols, BLOCK_ROWS: tl.constexpr, BLOCK_COLS: tl.constexpr):
    row = (tl.program_id(0) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)).to(tl.int64)
    column = tl.arange(0, BLOCK_COLS)
    mask = (row[:, None] < rows) & (column[None, :] < cols)
    offset = row[:, None] * cols + column[None, :]
    # Rows past the end hold zeros, so that no NaN arises in them.
    x = tl.load(x_ptr + offset, mask=mask, other=0.0)
    x = tl.where(column[None, :] < cols, x, -float("inf"))
    numerator = tl.exp(x - tl.max(x, axis=1)[:, None])
    tl.store(out_ptr + offset, numerator / tl.sum(numerator, axis=1)[:, None], mask=mask)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        out = torch.empty_like(x)
        block_cols = triton.next_power_of_2(cols)
        softmax_kernel[lambda meta: (triton.cdiv(rows, meta["BLOCK_ROWS"]),)](x, out, rows, cols, BLOCK_COLS=block_cols)
        return out
