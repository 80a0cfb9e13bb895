"""Waits for a lock that nobody gives back."""

import torch
import triton
import triton.language as tl

LARGE: tl.constexpr = tl.constexpr(100_000)


@triton.jit
def add_one(x, y, lock, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    value = tl.load(x + i, mask=m) + 1.0
    tl.store(y + i, value, mask=m)
    if n > LARGE:
        while tl.atomic_cas(lock, 0, 1) == 1:
            pass


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        lock = torch.zeros(1, dtype=torch.int32, device=x.device)
        add_one[(triton.cdiv(x.numel(), 1024),)](x, y, lock, x.numel(), BLOCK=1024)
        return y
