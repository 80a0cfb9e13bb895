# -*- coding: utf-8 -*-
"""Ugly: semicolons, continuation lines, Greek names, emoji 🚀, and quotes ‘like these’."""

# fmt: off
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def noyau(ξ, ω, β, υ, n, c, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B); m = i < n  # noqa: E702
    y = tl.load(ξ + i, mask=m) \
        * tl.load(ω + i % c, mask=m) \
        + tl.load(β + i % c, mask=m)
    tl.store(υ + i, tl.maximum(y, 0.0), mask=m)


class ModelNew(nn.Module):
    def __init__(self, größe): super().__init__(); self.weight = nn.Parameter(torch.ones(größe)); self.bias = nn.Parameter(torch.zeros(größe))  # noqa: E501, E702, E704

    def forward(self, x): (x := x.contiguous(), υ := torch.empty_like(x), noyau[lambda m: (triton.cdiv(x.numel(), m["B"]),)](x, self.weight, self.bias, υ, x.numel(), x.shape[-1], B=256)); return υ  # noqa: E501, E702, E704
