"""Launch options that Triton documents."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * cols
    column = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row + column, mask=column < cols, other=-float("inf"))
    numerator = tl.exp(x - tl.max(x))
    tl.store(out_ptr + row + column, numerator / tl.sum(numerator), mask=column < cols)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        out = torch.empty_like(x)
        softmax_kernel[(rows, 1)](
            x,
            out,
            cols,
            BLOCK=triton.next_power_of_2(cols),
            num_warps=4,
            num_stages=2,
            num_ctas=1,
            maxnreg=128,
            enable_fp_fusion=False,
        )
        return out
