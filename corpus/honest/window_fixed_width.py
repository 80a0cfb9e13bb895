"""The window as a constexpr, its loop unrolled."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def window_kernel(x_ptr, out_ptr, cols, windows, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    window = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = window < windows
    total = tl.load(x_ptr + row * cols + window, mask=mask, other=0.0)
    for item in tl.static_range(1, WIDTH):
        total += tl.load(x_ptr + row * cols + window + item, mask=mask, other=0.0)
    tl.store(out_ptr + row * windows + window, total * (1.0 / WIDTH), mask=mask)


class ModelNew(nn.Module):
    def __init__(self, window):
        super().__init__()
        self.window = window

    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        windows = cols - self.window + 1
        out = x.new_empty((rows, windows))
        window_kernel[(rows, triton.cdiv(windows, 64))](x, out, cols, windows, WIDTH=self.window, BLOCK=64)
        return out
