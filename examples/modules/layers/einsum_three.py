"""A tensor contraction of three operands, and one with a trace."""

import torch
import torch.nn as nn

BATCH = 2
ROWS = 5
COLS = 6
INNER = 7

CASES = [
    {"BATCH": 1, "ROWS": 3, "COLS": 2, "INNER": 4},
]
REALISTIC = {"BATCH": 16, "ROWS": 256, "COLS": 256, "INNER": 512}


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, y, z):
        return torch.einsum("bik,kj,bj->bi", x, y, z), torch.einsum("bik->bk", x), torch.einsum("...ij,jk->...ik", x, y)


def get_inputs():
    return [torch.randn(BATCH, ROWS, INNER), torch.randn(INNER, COLS), torch.randn(BATCH, COLS)]


def get_init_inputs():
    return []
