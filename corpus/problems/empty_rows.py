"""tanh of the rows, fp32, where a case has no rows at all and another no columns."""

import torch
import torch.nn as nn

ROWS, COLS = 30, 250

CASES = [
    {"name": "no rows", "ROWS": 0, "COLS": 16},
    {"name": "no columns", "ROWS": 4, "COLS": 0},
    {"name": "one element", "ROWS": 1, "COLS": 1},
]


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return torch.tanh(x)


def get_inputs():
    return [torch.randn(ROWS, COLS)]


def get_init_inputs():
    return []
