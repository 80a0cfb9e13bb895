"""Tiles from a generator; a counter and a dict that live for one call."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def affine_relu_kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, size, cols, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < size
    column = i % cols
    x = tl.load(x_ptr + i, mask=mask, other=0.0)
    weight = tl.load(weight_ptr + column, mask=mask, other=0.0)
    bias = tl.load(bias_ptr + column, mask=mask, other=0.0)
    tl.store(out_ptr + i, tl.maximum(x * weight + bias, 0.0), mask=mask)


def tiles(rows, step):
    first = 0
    while first < rows:
        yield slice(first, min(first + step, rows))
        first += step


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(cols))
        self.bias = nn.Parameter(torch.zeros(cols))

    def forward(self, x):
        x = x.contiguous()
        buffers, launched = {"out": torch.empty_like(x)}, 0

        def launch(part):
            nonlocal launched
            source, target = x[part], buffers["out"][part]
            affine_relu_kernel[(triton.cdiv(source.numel(), 256),)](
                source, self.weight, self.bias, target, source.numel(), x.shape[-1], BLOCK=256
            )
            launched += 1

        for part in tiles(x.shape[0], 16):
            launch(part)
        else:
            assert launched == triton.cdiv(x.shape[0], 16)
        return buffers.pop("out")
