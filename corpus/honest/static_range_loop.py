"""A loop that the compiler unrolls, of a length that the host works out."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_sum_kernel(x_ptr, out_ptr, cols, STEPS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    tl.static_assert(STEPS > 0)
    for step in tl.static_range(STEPS):
        column = step * BLOCK + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * cols + column, mask=column < cols, other=0.0)
    tl.store(out_ptr + row, tl.sum(total))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        out = torch.empty(rows, dtype=x.dtype, device=x.device)
        row_sum_kernel[(rows,)](x, out, cols, STEPS=triton.cdiv(cols, 256), BLOCK=256)
        return out
