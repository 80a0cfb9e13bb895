"""Running products down the columns."""

import torch
import torch.nn as nn

ROWS = 37
COLS = 6

CASES = [
    {"ROWS": 2, "COLS": 3},
]
REALISTIC = {"ROWS": 4096, "COLS": 8192}


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return torch.cumprod(x, dim=0)


def get_inputs():
    return [torch.rand(ROWS, COLS) * 0.2 + 0.9]


def get_init_inputs():
    return []
