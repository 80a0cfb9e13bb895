"""Few rows and columns, a long inner dimension."""

import torch
import torch.nn as nn

ROWS = 24
INNER = 4096
COLS = 40

CASES = [
    {"ROWS": 1, "INNER": 257, "COLS": 3},
]
REALISTIC = {"ROWS": 256, "INNER": 131072, "COLS": 256}


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, a, b):
        return a @ b


def get_inputs():
    return [torch.randn(ROWS, INNER), torch.randn(INNER, COLS)]


def get_init_inputs():
    return []
