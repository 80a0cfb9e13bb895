"""Both operands written out in full by copies, then an elementwise kernel."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def difference_kernel(a_ptr, b_ptr, out_ptr, size, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < size
    d = tl.load(a_ptr + i, mask=mask) - tl.load(b_ptr + i, mask=mask)
    tl.store(out_ptr + i, tl.where(d > 0, d, 0.0), mask=mask)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, a, b):
        left = a[:, None].expand(-1, b.numel()).contiguous()
        right = b[None].expand_as(left).contiguous()
        out = torch.empty_like(left)
        difference_kernel[(triton.cdiv(out.numel(), 512),)](left, right, out, out.numel(), BLOCK=512)
        return out
