"""The step counter of the contract decides: from step 10 on the running mean is no longer updated."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def ema_kernel(x_ptr, run_ptr, steps_ptr, out_ptr, rows, cols, momentum, BR: tl.constexpr, BC: tl.constexpr):
    c = tl.arange(0, BC)
    run = tl.load(run_ptr + c, mask=c < cols, other=0.0)
    steps = tl.load(steps_ptr)
    if steps < 10:
        acc = tl.zeros((BR, BC), dtype=tl.float32)
        for r0 in range(0, rows, BR):
            r = r0 + tl.arange(0, BR)
            mask = (r[:, None] < rows) & (c[None, :] < cols)
            acc += tl.load(x_ptr + r[:, None] * cols + c[None, :], mask=mask, other=0.0)
        run = run * (1.0 - momentum) + tl.sum(acc, axis=0) / rows * momentum
        tl.store(run_ptr + c, run, mask=c < cols)
    tl.store(steps_ptr, steps + 1)
    for r0 in range(0, rows, BR):
        r = r0 + tl.arange(0, BR)
        mask = (r[:, None] < rows) & (c[None, :] < cols)
        x = tl.load(x_ptr + r[:, None] * cols + c[None, :], mask=mask, other=0.0)
        tl.store(out_ptr + r[:, None] * cols + c[None, :], x - run[None, :], mask=mask)


class ModelNew(nn.Module):
    def __init__(self, cols, momentum):
        super().__init__()
        self.momentum = momentum
        self.register_buffer("running", torch.zeros(cols))
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        out = torch.empty_like(x)
        rows, cols = x.shape
        block = triton.next_power_of_2(cols)
        ema_kernel[(1,)](x, self.running, self.steps, out, rows, cols, self.momentum, BR=16, BC=block)
        return out
