"""Which elements are not zero, fp32 -> bool: a single cast computes it."""

import torch
import torch.nn as nn

SIZE = 20011

CASES = [{"name": "block + 1", "SIZE": 1025}]


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return x != 0.0


def get_inputs():
    return [torch.randn(SIZE) * (torch.rand(SIZE) > 0.5)]


def get_init_inputs():
    return []
