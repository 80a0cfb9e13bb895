"""Mish."""

import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = 60
COLS = 700

CASES = [
    {"ROWS": 1, "COLS": 1},
    {"ROWS": 3, "COLS": 1023},
]
REALISTIC = {"ROWS": 4096, "COLS": 32768}


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return F.mish(x)


def get_inputs():
    return [torch.randn(ROWS, COLS) * 2.0]


def get_init_inputs():
    return []
