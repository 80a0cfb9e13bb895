"""The half that is only moved is moved by `copy_`; the half that is computed has a kernel."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def double_into_kernel(b_ptr, out_ptr, cols, out_stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    b = tl.load(b_ptr + row * cols + column, mask=column < cols)
    tl.store(out_ptr + row * out_stride + column, b + b, mask=column < cols)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, a, b):
        rows, left, right = a.shape[0], a.shape[1], b.shape[1]
        out = a.new_empty((rows, left + right))
        out[:, :left].copy_(a)
        double_into_kernel[(rows, triton.cdiv(right, 128))](
            b.contiguous(), out[:, left:], right, out.stride(0), BLOCK=128
        )
        return out
