"""All column blocks of a row store to the same place first and correct it afterwards: the winner is a matter of luck."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def racing_kernel(x_ptr, out_ptr, tail_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    block = tl.program_id(1)
    column = block * BLOCK + tl.arange(0, BLOCK)
    mask = column < cols
    x = tl.load(x_ptr + row * cols + column, mask=mask, other=0.0)
    carry = tl.load(tail_ptr + row)
    tl.store(out_ptr + row * cols + column, tl.cumsum(x, axis=0) + carry, mask=mask)
    tl.store(tail_ptr + row, carry + tl.sum(x))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        rows, cols = x.shape
        out = torch.empty_like(x)
        tail = torch.zeros(rows, dtype=x.dtype, device=x.device)
        racing_kernel[(rows, triton.cdiv(cols, 256))](x, out, tail, cols, BLOCK=256)
        return out
