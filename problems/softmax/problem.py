"""Row softmax, fp32, with large logits: the maximum must be subtracted or the exponentials overflow."""

import torch
import torch.nn as nn

ROWS, COLS = 256, 1000
SPREAD = 30.0

CASES = [
    {"name": "two columns", "ROWS": 1, "COLS": 2},
    {"name": "prime", "ROWS": 11, "COLS": 257},
    {"name": "block - 1", "ROWS": 4, "COLS": 511},
    {"name": "block + 1", "ROWS": 4, "COLS": 513},
]


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return torch.softmax(x, dim=-1)


def get_inputs():
    return [torch.randn(ROWS, COLS) * SPREAD]


def get_init_inputs():
    return []
