"""Overlapping windows as a view, without a copy."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def window_kernel(x_ptr, out_ptr, windows, width, row_stride, window_stride, item_stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    window = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = window < windows
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for item in range(width):
        offset = row * row_stride + window * window_stride + item * item_stride
        total += tl.load(x_ptr + offset, mask=mask, other=0.0)
    tl.store(out_ptr + row * windows + window, total / width, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, window):
        super().__init__()
        self.window = window

    def forward(self, x):
        view = x.unfold(-1, self.window, 1)
        rows, windows, width = view.shape
        again = torch.as_strided(x, view.shape, view.stride(), x.storage_offset())
        out = x.new_empty((rows, windows))
        window_kernel[(rows, triton.cdiv(windows, 128))](again, out, windows, width, *again.stride(), BLOCK=128)
        return out
