"""The product of a matrix with its own transpose."""

import torch
import torch.nn as nn

ROWS = 96
INNER = 64

CASES = [
    {"ROWS": 5, "INNER": 3},
]
REALISTIC = {"ROWS": 2048, "INNER": 2048}


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return x @ x.T


def get_inputs():
    return [torch.randn(ROWS, INNER)]


def get_init_inputs():
    return []
