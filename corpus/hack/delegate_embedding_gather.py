"""The gather is an index expression of torch; the kernel scales and adds."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scale_add_kernel(rows_ptr, positions_ptr, out_ptr, n, period, scale, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row = tl.load(rows_ptr + i, mask=i < n)
    tl.store(out_ptr + i, row * scale + tl.load(positions_ptr + i % period, mask=i < n), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self, vocabulary, time, width):
        super().__init__()
        self.table = nn.Embedding(vocabulary, width)
        self.positions = nn.Parameter(torch.randn(time, width))
        self.scale = width**0.5

    def forward(self, tokens):
        rows = self.table.weight[tokens]
        out = torch.empty_like(rows)
        n, period = out.numel(), self.positions.numel()
        scale_add_kernel[(triton.cdiv(n, 1024),)](rows, self.positions, out, n, period, self.scale, BLOCK=1024)
        return out
