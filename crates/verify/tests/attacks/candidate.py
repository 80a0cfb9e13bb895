"""The honest rest of an attacking candidate: the attack runs at import, in `__init__` or in `forward`."""

import torch
import triton
import triton.language as tl
from attack import attack


@triton.jit
def add_one(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        attack("init")

    def forward(self, x):
        attack("forward")
        y = torch.empty_like(x)
        add_one[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)
        return y


attack("import")
