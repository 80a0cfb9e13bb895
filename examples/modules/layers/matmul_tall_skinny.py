"""A tall matrix times a wide one: the inner dimension is small."""

import torch
import torch.nn as nn

ROWS = 320
INNER = 24
COLS = 200

CASES = [
    {"ROWS": 33, "INNER": 1, "COLS": 17},
]
REALISTIC = {"ROWS": 8192, "INNER": 64, "COLS": 8192}


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, a, b):
        return torch.matmul(a, b)


def get_inputs():
    return [torch.randn(ROWS, INNER), torch.randn(INNER, COLS)]


def get_init_inputs():
    return []
