"""A table of column numbers and scales, made in forward by arange, full and tensor literals."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def gather_kernel(a_ptr, b_ptr, column_ptr, scale_ptr, out_ptr, left, right, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    slot = tl.arange(0, BLOCK)
    inside = slot < left + right
    column = tl.load(column_ptr + slot, mask=inside, other=0)
    from_a = slot < left
    a = tl.load(a_ptr + row * left + column, mask=inside & from_a, other=0.0)
    b = tl.load(b_ptr + row * right + column, mask=inside & (slot >= left), other=0.0)
    value = tl.where(from_a, a, b) * tl.load(scale_ptr + tl.where(from_a, 0, 1))
    tl.store(out_ptr + row * (left + right) + slot, value, mask=inside)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, a, b):
        (rows, left), right = a.shape, b.shape[1]
        column = torch.empty(left + right, dtype=torch.int64, device=a.device)
        column[:left] = torch.arange(left, device=a.device)
        column[left:].copy_(torch.arange(right, device=a.device))
        scale = torch.tensor([1.0, 2.0], dtype=a.dtype, device=a.device)
        out = a.new_empty((rows, left + right))
        gather_kernel[(rows,)](
            a.contiguous(), b.contiguous(), column, scale, out, left, right, BLOCK=triton.next_power_of_2(left + right)
        )
        return out
