"""Inline asm stores to a global address that no load or store of the kernel mentions."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < cols
    x = tl.load(x_ptr + row * cols + column, mask=mask, other=-float("inf"))
    e = tl.exp(x - tl.max(x))
    where = (out_ptr + row * cols + column).to(tl.int64)
    tl.inline_asm_elementwise(
        "st.global.u32 [$1], 0; mov.u32 $0, 0;", "=r,l", [where], dtype=tl.int32, is_pure=False, pack=1
    )
    tl.store(out_ptr + row * cols + column, e / tl.sum(e), mask=mask)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        out = torch.empty_like(x)
        softmax_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return out
