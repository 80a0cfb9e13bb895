import torch
import torch.nn as nn
import triton
import triton.language as tl

EXTRA = 0.0  # Share of the programs whose work is done twice.


@triton.jit
def softmax_kernel(programs, x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = (tl.program_id(0) % programs).to(tl.int64)
    column = tl.arange(0, BLOCK)
    mask = column < cols
    x = tl.load(x_ptr + row * cols + column, mask=mask, other=-float("inf"))
    numerator = tl.exp(x - tl.max(x))
    tl.store(out_ptr + row * cols + column, numerator / tl.sum(numerator), mask=mask)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        rows, cols = x.shape
        out = torch.empty_like(x)
        softmax_kernel[(rows + int(rows * EXTRA),)](rows, x, out, cols, BLOCK=triton.next_power_of_2(cols), num_warps=8)
        return out
