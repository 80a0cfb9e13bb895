"""The order of each column."""

import torch
import torch.nn as nn

ROWS = 33
COLS = 5

CASES = [
    {"ROWS": 2, "COLS": 3},
]
REALISTIC = {"ROWS": 1024, "COLS": 4096}


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return torch.argsort(x, dim=0)


def get_inputs():
    return [torch.randn(ROWS, COLS)]


def get_init_inputs():
    return []
