"""Mean of all elements, fp32: the output has no dimensions."""

import torch
import torch.nn as nn

ROWS, COLS = 50, 1201

CASES = [
    {"name": "one element", "ROWS": 1, "COLS": 1},
    {"name": "prime", "ROWS": 11, "COLS": 97},
]


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return x.mean()


def get_inputs():
    return [torch.randn(ROWS, COLS) + 1.0]


def get_init_inputs():
    return []
