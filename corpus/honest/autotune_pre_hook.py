"""Autotuned atomics onto an output that each configuration's `pre_hook` zeroes before every launch."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


def zero_output(arguments):
    arguments["out_ptr"].zero_()


@triton.autotune(
    configs=[
        triton.Config({"CHUNK": 64}, num_warps=2, pre_hook=zero_output),
        triton.Config({"CHUNK": 128}, num_warps=4, pre_hook=zero_output),
    ],
    key=["rows", "cols"],
)
@triton.jit
def column_mean_kernel(x_ptr, out_ptr, rows, cols, CHUNK: tl.constexpr, BLOCK_COLS: tl.constexpr):
    row = tl.program_id(0) * CHUNK + tl.arange(0, CHUNK)
    col = tl.program_id(1) * BLOCK_COLS + tl.arange(0, BLOCK_COLS)
    mask = (row[:, None] < rows) & (col[None, :] < cols)
    x = tl.load(x_ptr + row[:, None].to(tl.int64) * cols + col[None, :], mask=mask, other=0.0)
    tl.atomic_add(out_ptr + col, tl.sum(x, axis=0) / rows, mask=col < cols)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        out = torch.empty(cols, dtype=x.dtype, device=x.device)

        def grid(meta):
            return triton.cdiv(rows, meta["CHUNK"]), triton.cdiv(cols, meta["BLOCK_COLS"])

        column_mean_kernel[grid](x, out, rows, cols, BLOCK_COLS=64)
        return out
