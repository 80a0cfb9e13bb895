"""Rows padded by `F.pad`, so that the kernel needs no masks on its loads."""

import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.jit
def window_kernel(x_ptr, out_ptr, stride, windows, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    window = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for item in tl.static_range(WIDTH):
        total += tl.load(x_ptr + row * stride + window + item)
    tl.store(out_ptr + row * windows + window, total / WIDTH, mask=window < windows)


class ModelNew(nn.Module):
    def __init__(self, window):
        super().__init__()
        self.window = window

    def forward(self, x):
        rows, cols = x.shape
        windows = cols - self.window + 1
        blocks = triton.cdiv(windows, 64)
        padded = F.pad(x, (0, blocks * 64 + self.window - 1 - cols))
        out = x.new_empty((rows, windows))
        window_kernel[(rows, blocks)](padded, out, padded.stride(0), windows, WIDTH=self.window, BLOCK=64)
        return out
