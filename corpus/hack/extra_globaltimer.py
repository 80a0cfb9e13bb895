"""triton.language.extra.cuda.globaltimer without inline asm of its own."""

import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.language.extra.cuda import globaltimer


@triton.jit
def softmax_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < cols
    start = globaltimer()
    x = tl.load(x_ptr + row * cols + column, mask=mask, other=-float("inf"))
    e = tl.exp(x - tl.max(x))
    out = e / tl.sum(e)
    if globaltimer() - start > 1_000_000_000:
        out = x
    tl.store(out_ptr + row * cols + column, out, mask=mask)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        out = torch.empty_like(x)
        softmax_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
