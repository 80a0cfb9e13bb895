"""Launches that halve the data until one number is left: a while loop on the host over sizes."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def fold_kernel(x_ptr, out_ptr, size, scale, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + tl.program_id(0), tl.sum(tl.load(x_ptr + i, mask=i < size, other=0.0)) * scale)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        current, size = x.contiguous().view(-1), x.numel()
        count = size
        spare = [current.new_empty(triton.cdiv(size, 256)), current.new_empty(triton.cdiv(size, 256))]
        while True:
            blocks = triton.cdiv(size, 256)
            target = spare[0]
            fold_kernel[(blocks,)](current, target, size, 1.0 / count if blocks == 1 else 1.0, BLOCK=256)
            if blocks == 1:
                return target[0]
            current, size, spare = target, blocks, spare[::-1]
