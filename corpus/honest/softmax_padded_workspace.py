"""Rows padded to a power of two with -inf on the host, so that the kernel needs no masks."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    numerator = tl.exp(x - tl.max(x))
    tl.store(out_ptr + i, numerator / tl.sum(numerator))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        rows, cols = x.shape
        block = triton.next_power_of_2(cols)
        padded = x.new_full((rows, block), float("-inf"))
        padded[:, :cols] = x
        out = torch.empty_like(padded)
        softmax_kernel[(rows,)](padded, out, BLOCK=block, num_warps=8)
        return out[:, :cols].contiguous()
