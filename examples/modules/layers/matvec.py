"""A matrix times a vector."""

import torch
import torch.nn as nn

ROWS = 128
INNER = 1000

CASES = [
    {"ROWS": 3, "INNER": 5},
]
REALISTIC = {"ROWS": 2048, "INNER": 65536}


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, a, v):
        return a @ v


def get_inputs():
    return [torch.randn(ROWS, INNER), torch.randn(INNER, 1)]


def get_init_inputs():
    return []
