import torch
import torch.nn as nn
import triton
import triton.language as tl

EXTRA = 0.0  # Share of steps that are done beside those that are needed.
STEPS = 200


@triton.jit
def iterate_kernel(x_ptr, out_ptr, n, steps, more, factor, one, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    for step in range(steps + more):
        by = tl.where(step < steps, factor, one)
        x = x * by + (1.0 - by)
    tl.store(out_ptr + i, x, mask=i < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        out = torch.empty_like(x)
        n = x.numel()
        more = int(STEPS * EXTRA)
        iterate_kernel[(triton.cdiv(n, 1024),)](x, out, n, STEPS, more, 0.99, 1.0, BLOCK=1024, num_warps=4)
        return out
