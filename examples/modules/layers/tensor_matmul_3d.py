"""A three-dimensional tensor times a matrix."""

import torch
import torch.nn as nn

BATCH = 3
ROWS = 40
INNER = 50
COLS = 60

CASES = [
    {"BATCH": 1, "ROWS": 3, "INNER": 5, "COLS": 2},
]
REALISTIC = {"BATCH": 16, "ROWS": 1024, "INNER": 2048, "COLS": 768}


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, a, b):
        return torch.matmul(a, b)


def get_inputs():
    return [torch.randn(BATCH, ROWS, INNER), torch.randn(INNER, COLS)]


def get_init_inputs():
    return []
