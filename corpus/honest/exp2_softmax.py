"""Base 2: the logits are multiplied by log2(e), and the hardware's exp2 is used as inline assembly."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def fast_exp2(x):
    return tl.inline_asm_elementwise("ex2.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def softmax_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * cols
    LOG2E: tl.constexpr = 1.4426950408889634
    column = tl.arange(0, BLOCK)
    mask = column < cols
    x = tl.load(x_ptr + row + column, mask=mask, other=-float("inf")) * LOG2E
    power = fast_exp2(x - tl.max(x))
    tl.store(out_ptr + row + column, power * (1.0 / tl.sum(power)), mask=mask)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        out = torch.empty_like(x)
        softmax_kernel[(rows,)](x, out, cols, BLOCK=triton.next_power_of_2(cols), num_warps=8)
        return out
