"""Asks for the device as libraries do: availability, guard, capability, properties, stream, synchronize."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def bias_swish_clamp_kernel(x_ptr, bias_ptr, out_ptr, size, cols, low, high, BLOCK: tl.constexpr):
    # A grid-stride loop: the grid is as large as the device, not as the data.
    step = tl.num_programs(0) * BLOCK
    for start in range(tl.program_id(0) * BLOCK, size, step):
        i = start + tl.arange(0, BLOCK)
        mask = i < size
        x = tl.load(x_ptr + i, mask=mask, other=0.0) + tl.load(bias_ptr + i % cols, mask=mask, other=0.0)
        tl.store(out_ptr + i, tl.minimum(tl.maximum(x * tl.sigmoid(x), low), high), mask=mask)


class ModelNew(nn.Module):
    def __init__(self, features, low, high):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(features) * 0.5)
        self.low = low
        self.high = high

    def forward(self, x):
        if not torch.cuda.is_available() or torch.cuda.device_count() < 1:
            raise RuntimeError("this module needs a CUDA device")
        if not x.is_cuda:
            raise ValueError("x must be on a CUDA device")
        x = x.contiguous()
        out = torch.empty_like(x)
        properties = torch.cuda.get_device_properties(x.device)
        major, _ = torch.cuda.get_device_capability(x.device)
        block = 1024 if major >= 9 else 512
        programs = min(triton.cdiv(x.numel(), block), 2 * properties.multi_processor_count)
        with torch.cuda.device(x.device):
            bias_swish_clamp_kernel[(programs,)](
                x, self.bias, out, x.numel(), x.shape[1], self.low, self.high, BLOCK=block
            )
        return out
