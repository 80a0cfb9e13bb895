"""Upper triangle of a product of upper triangular matrices."""

import torch
import torch.nn as nn

SIZE = 96

CASES = [
    {"SIZE": 17},
]
REALISTIC = {"SIZE": 2048}


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, a, b):
        return torch.triu(torch.matmul(a, b))


def get_inputs():
    return [torch.triu(torch.randn(SIZE, SIZE)), torch.triu(torch.randn(SIZE, SIZE))]


def get_init_inputs():
    return []
