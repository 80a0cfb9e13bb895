"""Rotary position embedding, halves swapped, and gradients, fp32."""

import torch
import torch.nn as nn

LENGTH = 60
WIDTH = 32

CASES = [
    {"LENGTH": 7, "WIDTH": 6},
]
REALISTIC = {"LENGTH": 8192, "WIDTH": 1024}
GRADIENTS = ("x",)


class Model(nn.Module):
    def forward(self, x, cos, sin):
        first, second = x.chunk(2, dim=-1)
        return x * cos + torch.cat([-second, first], dim=-1) * sin


def get_inputs():
    return [torch.randn(LENGTH, WIDTH), torch.randn(LENGTH, WIDTH), torch.randn(LENGTH, WIDTH)]


def get_init_inputs():
    return []
