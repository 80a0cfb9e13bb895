"""Atomic additions onto `torch.zeros`: what no addition reaches stays the zero that the host put there."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def segment_sum_kernel(x_ptr, segment_ptr, out_ptr, items, width, BLOCK_ITEMS: tl.constexpr, BLOCK_WIDTH: tl.constexpr):
    item = tl.program_id(0) * BLOCK_ITEMS + tl.arange(0, BLOCK_ITEMS)
    column = tl.program_id(1) * BLOCK_WIDTH + tl.arange(0, BLOCK_WIDTH)
    mask = (item[:, None] < items) & (column[None, :] < width)

    segment = tl.load(segment_ptr + item, mask=item < items, other=0)
    x = tl.load(x_ptr + item[:, None].to(tl.int64) * width + column[None, :], mask=mask, other=0.0)
    # Nobody reads the sums inside the kernel, so no ordering is needed.
    tl.atomic_add(out_ptr + segment[:, None] * width + column[None, :], x, mask=mask, sem="relaxed")


class ModelNew(nn.Module):
    def __init__(self, segments):
        super().__init__()
        self.segments = segments

    def forward(self, x, segment):
        x, segment = x.contiguous(), segment.contiguous()
        items, width = x.shape
        out = torch.zeros((self.segments, width), dtype=x.dtype, device=x.device)
        block_items, block_width = 32, 64
        grid = (triton.cdiv(items, block_items), triton.cdiv(width, block_width))
        segment_sum_kernel[grid](x, segment, out, items, width, BLOCK_ITEMS=block_items, BLOCK_WIDTH=block_width)
        return out
