"""bijl,lk->bijk by einsum."""

import torch
import torch.nn as nn

BATCH = 2
ROWS = 5
COLS = 7
INNER = 24
OUT = 30

CASES = [
    {"BATCH": 1, "ROWS": 2, "COLS": 3, "INNER": 5, "OUT": 4},
]
REALISTIC = {"BATCH": 8, "ROWS": 256, "COLS": 512, "INNER": 256, "OUT": 768}


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, a, b):
        return torch.einsum("bijl,lk->bijk", a, b)


def get_inputs():
    return [torch.randn(BATCH, ROWS, COLS, INNER), torch.randn(INNER, OUT)]


def get_init_inputs():
    return []
