"""Running sum along columns."""

import torch
import torch.nn as nn

ROWS = 20
COLS = 500

CASES = [
    {"ROWS": 1, "COLS": 3},
    {"ROWS": 3, "COLS": 257},
]
REALISTIC = {"ROWS": 4096, "COLS": 8192}


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return torch.cumsum(x, dim=0)


def get_inputs():
    return [torch.randn(ROWS, COLS)]


def get_init_inputs():
    return []
