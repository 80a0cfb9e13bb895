"""relu(x * weight + bias) by column, fp32: a small module with parameters, for files whose host code matters."""

import torch
import torch.nn as nn

ROWS, COLS = 40, 300

CASES = [
    {"name": "one element", "ROWS": 1, "COLS": 1},
    {"name": "prime", "ROWS": 7, "COLS": 101},
]


class Model(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(cols) + 0.5)
        self.bias = nn.Parameter(torch.randn(cols))

    def forward(self, x):
        return torch.relu(x * self.weight + self.bias)


def get_inputs():
    return [torch.randn(ROWS, COLS) * 2.0]


def get_init_inputs():
    return [COLS]
