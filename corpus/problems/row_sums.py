"""Sums of rows, fp32."""

import torch
import torch.nn as nn

ROWS, COLS = 48, 1500

CASES = [
    {"name": "one element", "ROWS": 1, "COLS": 1},
    {"name": "prime", "ROWS": 5, "COLS": 257},
]


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return x.sum(dim=-1)


def get_inputs():
    return [torch.randn(ROWS, COLS) + 0.5]


def get_init_inputs():
    return []
