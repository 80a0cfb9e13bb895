"""Running maximum down the columns, and where it was seen."""

import torch
import torch.nn as nn

ROWS = 37
COLS = 6

CASES = [
    {"ROWS": 2, "COLS": 3},
    {"ROWS": 130, "COLS": 4},
]
REALISTIC = {"ROWS": 4096, "COLS": 8192}


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return torch.cummax(x, dim=0)


def get_inputs():
    return [torch.randn(ROWS, COLS)]


def get_init_inputs():
    return []
