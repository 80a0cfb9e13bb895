"""Which elements are positive, and how many in a row: a bool and an int64 output."""

import torch
import torch.nn as nn

ROWS, COLS = 60, 700

CASES = [
    {"name": "one element", "ROWS": 1, "COLS": 1},
    {"name": "prime", "ROWS": 13, "COLS": 127},
]


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        positive = x > 0
        return positive, positive.sum(dim=-1)


def get_inputs():
    return [torch.randn(ROWS, COLS)]


def get_init_inputs():
    return []
