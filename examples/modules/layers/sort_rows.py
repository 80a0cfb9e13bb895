"""Rows in descending order, and where each element came from."""

import torch
import torch.nn as nn

ROWS = 4
COLS = 37

CASES = [
    {"ROWS": 1, "COLS": 1},
    {"ROWS": 2, "COLS": 70},
]
REALISTIC = {"ROWS": 4096, "COLS": 1024}


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return torch.sort(x, dim=1, descending=True, stable=True)


def get_inputs():
    return [torch.randn(ROWS, COLS)]


def get_init_inputs():
    return []
