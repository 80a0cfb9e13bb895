"""Cumulative sums of rows, squared, and gradients, fp32."""

import torch
import torch.nn as nn

ROWS = 60
COLS = 200

CASES = [
    {"ROWS": 5, "COLS": 37},
]
REALISTIC = {"ROWS": 4096, "COLS": 4096}
GRADIENTS = True


class Model(nn.Module):
    def forward(self, x):
        return x.cumsum(-1).square()


def get_inputs():
    return [torch.randn(ROWS, COLS) * 0.1]


def get_init_inputs():
    return []
