"""Programs wait for a flag that a later program sets: a deadlock whenever not all of them run at once."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def chained_kernel(x_ptr, out_ptr, flag_ptr, rows, cols, BLOCK: tl.constexpr):
    row = rows - 1 - tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < cols
    while tl.atomic_add(flag_ptr, 0) < row:
        pass
    x = tl.load(x_ptr + row * cols + column, mask=mask, other=0.0)
    old = tl.load(out_ptr + column, mask=mask, other=0.0)
    tl.store(out_ptr + column, old + x / rows, mask=mask)
    tl.atomic_add(flag_ptr, 1)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        rows, cols = x.shape
        out = torch.zeros(cols, dtype=x.dtype, device=x.device)
        flag = torch.zeros((), dtype=torch.int32, device=x.device)
        chained_kernel[(rows,)](x, out, flag, rows, cols, BLOCK=triton.next_power_of_2(cols))
        return out
