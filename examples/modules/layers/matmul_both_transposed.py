"""A^T @ B^T, neither operand in its usual layout."""

import torch
import torch.nn as nn

ROWS = 70
INNER = 90
COLS = 110

CASES = [
    {"ROWS": 5, "INNER": 7, "COLS": 3},
]
REALISTIC = {"ROWS": 2048, "INNER": 4096, "COLS": 2048}


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, a, b):
        return a.T @ b.T


def get_inputs():
    return [torch.randn(INNER, ROWS), torch.randn(COLS, INNER)]


def get_init_inputs():
    return []
