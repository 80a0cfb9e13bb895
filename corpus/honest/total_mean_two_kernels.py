"""The mean of everything: partial sums, then one program."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def partial_kernel(x_ptr, partial_ptr, size, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(partial_ptr + tl.program_id(0), tl.sum(tl.load(x_ptr + i, mask=i < size, other=0.0)))


@triton.jit
def finish_kernel(partial_ptr, out_ptr, blocks, size, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr, tl.sum(tl.load(partial_ptr + i, mask=i < blocks, other=0.0)) / size)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        flat = x.reshape(-1)
        size = flat.numel()
        blocks = triton.cdiv(size, 1024)
        partial = flat.new_empty(blocks)
        out = torch.empty((), dtype=x.dtype, device=x.device)
        partial_kernel[(blocks,)](flat, partial, size, BLOCK=1024)
        finish_kernel[(1,)](partial, out, blocks, size, BLOCK=triton.next_power_of_2(blocks))
        return out
