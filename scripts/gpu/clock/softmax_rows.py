"""Softmax over 4,096 rows of 4,096: 128 MiB of traffic."""

import torch
import torch.nn as nn

ROWS, COLS = 4096, 4096
CASES = [{"name": "small", "ROWS": 16, "COLS": 1000}]


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return torch.softmax(x, dim=-1)


def get_inputs():
    return [torch.randn(ROWS, COLS)]


def get_init_inputs():
    return []
