"""A batch of products."""

import torch
import torch.nn as nn

BATCH = 6
ROWS = 40
INNER = 50
COLS = 60

CASES = [
    {"BATCH": 1, "ROWS": 3, "INNER": 5, "COLS": 2},
]
REALISTIC = {"BATCH": 64, "ROWS": 256, "INNER": 1024, "COLS": 512}


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, a, b):
        return torch.bmm(a, b)


def get_inputs():
    return [torch.randn(BATCH, ROWS, INNER), torch.randn(BATCH, INNER, COLS)]


def get_init_inputs():
    return []
