"""A lock for each row around load, add and store, as in Triton's layer-norm tutorial."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_sum_kernel(x_ptr, lock_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + column, mask=column < cols, other=0.0)
    part = tl.sum(x)
    while tl.atomic_cas(lock_ptr + row, 0, 1) == 1:
        pass
    tl.store(out_ptr + row, tl.load(out_ptr + row) + part)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr + row, 0)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        locks = torch.zeros(rows, dtype=torch.int32, device=x.device)
        out = torch.zeros(rows, dtype=x.dtype, device=x.device)
        row_sum_kernel[(rows, triton.cdiv(cols, 512))](x, locks, out, cols, BLOCK=512)
        return out
