"""x + relu(y) where x is a transposed view and y takes every second column: inputs that are not contiguous.

fp32. A kernel that assumes contiguous inputs reads the wrong elements; one that calls `.contiguous()` moves
everything twice.
"""

import torch
import torch.nn as nn

ROWS, COLS = 300, 400

CASES = [
    {"name": "one element", "ROWS": 1, "COLS": 1},
    {"name": "prime", "ROWS": 53, "COLS": 71},
    {"name": "block - 1", "ROWS": 31, "COLS": 63},
    {"name": "block + 1", "ROWS": 33, "COLS": 65},
]


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, y):
        return x + torch.relu(y)


def get_inputs():
    return [torch.randn(COLS, ROWS).t(), torch.randn(ROWS, 2 * COLS)[:, ::2]]


def get_init_inputs():
    return []
