"""Softmax of rows that are too long to be held in registers."""

import torch
import torch.nn as nn

ROWS = 2
COLS = 70001

CASES = [
    {"ROWS": 3, "COLS": 66000},
]
REALISTIC = {"ROWS": 2048, "COLS": 393216}


class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=1)


def get_inputs():
    return [torch.randn(ROWS, COLS)]


def get_init_inputs():
    return []
