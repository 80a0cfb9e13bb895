"""Special methods of the file's own classes."""

from dataclasses import dataclass, field

import torch
import torch.nn as nn
import triton
import triton.language as tl


@dataclass(slots=True)
class Block:
    size: int
    warps: int = field(default=4)

    def __post_init__(self):
        if self.size & (self.size - 1):
            raise ValueError(f"{self.size} is no power of two")


class Blocks:
    __slots__ = ("blocks",)

    def __init__(self, *sizes):
        self.blocks = {size: Block(size, warps=max(1, size // 128)) for size in sizes}

    def __getitem__(self, size):
        return self.blocks[max(s for s in self.blocks if s <= max(size, min(self.blocks)))]

    def __contains__(self, size):
        return size in self.blocks

    def __len__(self):
        return len(self.blocks)


class Quiet:
    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        return False


BLOCKS = Blocks(64, 256, 1024)


@triton.jit
def affine_relu_kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, size, cols, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < size
    column = i % cols
    x = tl.load(x_ptr + i, mask=mask, other=0.0)
    weight = tl.load(weight_ptr + column, mask=mask, other=0.0)
    bias = tl.load(bias_ptr + column, mask=mask, other=0.0)
    tl.store(out_ptr + i, tl.maximum(x * weight + bias, 0.0), mask=mask)


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(cols))
        self.bias = nn.Parameter(torch.zeros(cols))

    def forward(self, x):
        block = BLOCKS[x.numel()]
        assert block.size in BLOCKS and len(BLOCKS) == 3
        x = x.contiguous()
        out = torch.empty_like(x)
        with Quiet():
            affine_relu_kernel[(triton.cdiv(x.numel(), block.size),)](
                x, self.weight, self.bias, out, x.numel(), x.shape[-1], BLOCK=block.size, num_warps=block.warps
            )
        return out
