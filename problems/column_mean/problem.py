"""Mean of each column, fp32: a reduction over the outer dimension of a tall matrix.

Neighbouring threads should read neighbouring columns, and there are too few columns to fill a device
with one program each: the rows must be split.
"""

import torch
import torch.nn as nn

ROWS, COLS = 3000, 96

CASES = [
    {"name": "one element", "ROWS": 1, "COLS": 1},
    {"name": "prime", "ROWS": 211, "COLS": 37},
    {"name": "block - 1", "ROWS": 127, "COLS": 63},
    {"name": "block + 1", "ROWS": 129, "COLS": 65},
]


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return torch.mean(x, dim=0)


def get_inputs():
    return [torch.randn(ROWS, COLS) + torch.randn(COLS)]


def get_init_inputs():
    return []
