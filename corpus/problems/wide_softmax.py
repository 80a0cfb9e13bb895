"""Softmax over 65,536 columns, fp32: no output exceeds 4e-5, so an absolute tolerance of 1e-4 lets zeros pass."""

import torch
import torch.nn as nn

ROWS, COLS = 4, 65536

CASES = [
    {"name": "prime", "ROWS": 2, "COLS": 4099},
]


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return torch.softmax(x, dim=1)


def get_inputs():
    return [torch.rand(ROWS, COLS)]


def get_init_inputs():
    return []
