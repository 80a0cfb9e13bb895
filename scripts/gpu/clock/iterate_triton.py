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
    for _ in range(steps):
        x = x * factor + (1.0 - factor)
    for _ in range(more):
        x = x * one + (1.0 - one)
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
