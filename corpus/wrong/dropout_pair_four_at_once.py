"""One number for four neighbours."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, m_ptr, n, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    x = tl.load(x_ptr + i, mask=inside)
    kept = tl.rand(seed, i // 4) > 0.3
    tl.store(y_ptr + i, tl.where(kept, x / 0.7, 0.0), mask=inside)
    tl.store(m_ptr + i, (kept).to(tl.float32), mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        y, mask = torch.empty_like(x), torch.empty_like(x)
        seed = torch.randint(0, 2**31 - 1, (1,)).item()
        kernel[(triton.cdiv(x.numel(), 256),)](x, y, mask, x.numel(), seed, BLOCK=256)
        return y, mask
