"""The concatenation by one kernel: the left half copied, the right half doubled."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def concat_kernel(a_ptr, b_ptr, out_ptr, left, right, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    is_left = column < left
    a = tl.load(a_ptr + row * left + column, mask=is_left, other=0.0)
    b = tl.load(b_ptr + row * right + column - left, mask=(column >= left) & (column < left + right), other=0.0)
    tl.store(out_ptr + row * (left + right) + column, tl.where(is_left, a, 2.0 * b), mask=column < left + right)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, a, b):
        a, b = a.contiguous(), b.contiguous()
        rows, left, right = a.shape[0], a.shape[1], b.shape[1]
        out = a.new_empty((rows, left + right))
        concat_kernel[(rows, triton.cdiv(left + right, 128))](a, b, out, left, right, BLOCK=128)
        return out
