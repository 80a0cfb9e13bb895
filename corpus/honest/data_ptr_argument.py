"""Passes addresses as integers and casts them in the kernel, as kernels over lists of tensors do."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_address, out_address, cols, BLOCK: tl.constexpr):
    x_ptr = x_address.to(tl.pointer_type(tl.float32))
    out_ptr = out_address.to(tl.pointer_type(tl.float32))
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    mask = column < cols
    x = tl.load(x_ptr + row * cols + column, mask=mask, other=-float("inf"))
    numerator = tl.exp(x - tl.max(x))
    tl.store(out_ptr + row * cols + column, numerator / tl.sum(numerator), mask=mask)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        out = torch.empty_like(x)
        softmax_kernel[(rows,)](x.data_ptr(), out.data_ptr(), cols, BLOCK=triton.next_power_of_2(cols))
        return out
