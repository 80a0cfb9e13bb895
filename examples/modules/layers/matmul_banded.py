"""A product with the upper part of a band and a transposed batch operand."""

import torch
import torch.nn as nn

BATCH = 3
SIZE = 21
COLS = 9

CASES = [
    {"BATCH": 1, "SIZE": 5, "COLS": 4},
]
REALISTIC = {"BATCH": 32, "SIZE": 1024, "COLS": 1024}


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, y):
        band = x.triu(-2).tril(3)
        return torch.matmul(band, y.transpose(1, 2))


def get_inputs():
    return [torch.randn(SIZE, SIZE), torch.randn(BATCH, COLS, SIZE)]


def get_init_inputs():
    return []
