"""Two launches of one autotuned kernel share a workspace whose layout is a matter of the configuration, which each key chooses for itself."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"L": 0}), triton.Config({"L": 1})], key=["phase"])
@triton.jit
def phase_kernel(x_ptr, mid_ptr, out_ptr, rows, cols, phase, L: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, 1024)
    mask = column < cols
    x = tl.load(x_ptr + row * cols + column, mask=mask, other=-float("inf"))
    if phase == 2:
        m = tl.max(x)
        s = tl.sum(tl.exp(x - m))
        if L == 0:
            tl.store(mid_ptr + row * 2, m)
            tl.store(mid_ptr + row * 2 + 1, s)
        else:
            tl.store(mid_ptr + row, m)
            tl.store(mid_ptr + rows + row, s)
    else:
        if L == 0:
            m = tl.load(mid_ptr + row * 2)
            s = tl.load(mid_ptr + row * 2 + 1)
        else:
            m = tl.load(mid_ptr + row)
            s = tl.load(mid_ptr + rows + row)
        tl.store(out_ptr + row * cols + column, tl.exp(x - m) / s, mask=mask)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        rows, cols = x.shape
        out = torch.empty_like(x)
        mid = torch.empty((2 * rows,), device=x.device, dtype=x.dtype)
        phase_kernel[(rows,)](x, mid, out, rows, cols, 2)
        phase_kernel[(rows,)](x, mid, out, rows, cols, 3)
        return out
