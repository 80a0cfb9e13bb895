"""Truncation towards zero, fp32: a pair of casts computes it too."""

import torch
import torch.nn as nn

SIZE = 20011

CASES = [{"name": "block + 1", "SIZE": 1025}]


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return torch.trunc(x)


def get_inputs():
    return [torch.randn(SIZE) * 50.0]


def get_init_inputs():
    return []
