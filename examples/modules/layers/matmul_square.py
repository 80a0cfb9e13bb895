"""Product of two square matrices."""

import torch
import torch.nn as nn

SIZE = 96

CASES = [
    {"SIZE": 1},
    {"SIZE": 67},
]
REALISTIC = {"SIZE": 2048}


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, a, b):
        return a @ b


def get_inputs():
    return [torch.randn(SIZE, SIZE), torch.randn(SIZE, SIZE)]


def get_init_inputs():
    return []
