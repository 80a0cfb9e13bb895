"""Outer, inner and Kronecker products."""

import torch
import torch.nn as nn

ROWS = 7
COLS = 11

CASES = [
    {"ROWS": 1, "COLS": 3},
]
REALISTIC = {"ROWS": 8192, "COLS": 8192}


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, y):
        return torch.outer(x, y), x.dot(x), torch.kron(x[:2], y[:3])


def get_inputs():
    return [torch.randn(ROWS + 1), torch.randn(COLS)]


def get_init_inputs():
    return []
