"""A dict of outputs, one launch for each key."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def stat_kernel(x_ptr, out_ptr, cols, MODE: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    mask = column < cols
    x = tl.load(x_ptr + row * cols + column, mask=mask, other=0.0)
    if MODE == "peak":
        result = tl.max(tl.abs(x))
    else:
        result = tl.sum(x) / cols
        if MODE == "std":
            centred = tl.where(mask, x - result, 0.0)
            result = tl.sqrt(tl.sum(centred * centred) / (cols - 1))
    tl.store(out_ptr + row, result)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        outputs = {name: x.new_empty(rows) for name in ("mean", "std", "peak")}
        for name, out in outputs.items():
            stat_kernel[(rows,)](x, out, cols, MODE=name, BLOCK=triton.next_power_of_2(cols), num_warps=8)
        return dict(outputs)
