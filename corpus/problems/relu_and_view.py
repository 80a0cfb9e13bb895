"""relu(x), and x itself transposed: the second output is a view of the input, in the reference too."""

import torch
import torch.nn as nn

ROWS, COLS = 60, 90

CASES = [
    {"name": "one element", "ROWS": 1, "COLS": 1},
    {"name": "prime", "ROWS": 17, "COLS": 29},
]


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return torch.relu(x), x.t()


def get_inputs():
    return [torch.randn(ROWS, COLS)]


def get_init_inputs():
    return []
