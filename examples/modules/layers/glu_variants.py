"""Gated linear units with each usual gate."""

import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = 6
COLS = 38

CASES = [
    {"ROWS": 1, "COLS": 8},
]
REALISTIC = {"ROWS": 4096, "COLS": 8192}


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        a, b = x.chunk(2, dim=-1)
        return F.glu(x, dim=-1), F.silu(a) * b, F.gelu(a, approximate="tanh") * b, F.rrelu(a) + F.tanhshrink(b)


def get_inputs():
    return [torch.randn(ROWS, COLS)]


def get_init_inputs():
    return []
