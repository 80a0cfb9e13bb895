"""relu(a[i] - b[j]) for all pairs, fp32: broadcasting of two vectors."""

import torch
import torch.nn as nn

LEFT, RIGHT = 130, 170

CASES = [
    {"name": "one element", "LEFT": 1, "RIGHT": 1},
    {"name": "prime", "LEFT": 31, "RIGHT": 43},
]


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, a, b):
        return torch.relu(a[:, None] - b[None, :])


def get_inputs():
    return [torch.randn(LEFT), torch.randn(RIGHT)]


def get_init_inputs():
    return []
