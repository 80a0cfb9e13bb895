"""[a, 2 * b] side by side, fp32: a concatenation of which one half is computed."""

import torch
import torch.nn as nn

ROWS, LEFT, RIGHT = 40, 200, 120

CASES = [
    {"name": "one column each", "ROWS": 1, "LEFT": 1, "RIGHT": 1},
    {"name": "prime", "ROWS": 7, "LEFT": 31, "RIGHT": 67},
]


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, a, b):
        return torch.cat([a, 2.0 * b], dim=-1)


def get_inputs():
    return [torch.randn(ROWS, LEFT), torch.randn(ROWS, RIGHT)]


def get_init_inputs():
    return []
