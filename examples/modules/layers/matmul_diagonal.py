"""A diagonal matrix, given as a vector, times a matrix."""

import torch
import torch.nn as nn

ROWS = 96
COLS = 130

CASES = [
    {"ROWS": 5, "COLS": 3},
]
REALISTIC = {"ROWS": 4096, "COLS": 4096}


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, d, b):
        return torch.diag(d) @ b


def get_inputs():
    return [torch.randn(ROWS), torch.randn(ROWS, COLS)]


def get_init_inputs():
    return []
