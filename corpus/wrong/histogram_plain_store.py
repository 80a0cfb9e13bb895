"""Histogram that adds with load and store instead of atomics: programs overwrite each other."""

import torch
import torch.nn as nn
import triton
import triton.language as tl

BINS = 256


@triton.jit
def byte_histogram_kernel(image_ptr, counts_ptr, pixels, BINS: tl.constexpr, BLOCK: tl.constexpr):
    channel = tl.program_id(0).to(tl.int64)
    pixel = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = pixel < pixels
    value = tl.load(image_ptr + channel * pixels + pixel, mask=mask, other=0).to(tl.int32)
    counts = tl.histogram(value, BINS, mask=mask)

    value_bin = tl.arange(0, BINS)
    counts_ptrs = counts_ptr + channel * BINS + value_bin
    tl.store(counts_ptrs, tl.load(counts_ptrs) + counts.to(tl.int64))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, image):
        image = image.contiguous()
        channels, pixels = image.shape
        counts = torch.zeros((channels, BINS), dtype=torch.int64, device=image.device)
        block = 2048
        grid = (channels, triton.cdiv(pixels, block))
        byte_histogram_kernel[grid](image, counts, pixels, BINS=BINS, BLOCK=block)
        return counts
