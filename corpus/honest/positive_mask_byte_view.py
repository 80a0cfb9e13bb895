"""Bytes written by the kernel and looked at as bool; counts in int32, widened afterwards."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def positive_kernel(x_ptr, byte_ptr, count_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    count = 0
    for start in range(0, cols, BLOCK):
        column = start + tl.arange(0, BLOCK)
        inside = column < cols
        byte = (tl.load(x_ptr + row * cols + column, mask=inside, other=-1.0) > 0).to(tl.uint8)
        tl.store(byte_ptr + row * cols + column, byte, mask=inside)
        count += tl.sum(byte.to(tl.int32))
    tl.store(count_ptr + row, count)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        byte = torch.empty(x.shape, dtype=torch.uint8, device=x.device)
        count = torch.empty(rows, dtype=torch.int32, device=x.device)
        positive_kernel[(rows,)](x, byte, count, cols, BLOCK=256)
        return byte.view(torch.bool), count.to(torch.int64)
