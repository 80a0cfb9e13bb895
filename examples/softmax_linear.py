"""softmax(x @ weight.T + bias) over the last dimension, fp32: a small classifier head.

A KernelBench-format problem: `Model`, `get_inputs` and `get_init_inputs`. The optional `CASES` also tries
other sizes; each entry replaces the constants of the same name.
"""

import torch
import torch.nn as nn

BATCH, FEATURES, CLASSES = 128, 256, 100

CASES = [
    {"name": "one row, two classes", "BATCH": 1, "FEATURES": 1, "CLASSES": 2},
    {"name": "primes", "BATCH": 37, "FEATURES": 53, "CLASSES": 71},
    {"name": "block size + 1", "BATCH": 17, "FEATURES": 33, "CLASSES": 65},
]


class Model(nn.Module):
    def __init__(self, features, classes):
        super().__init__()
        self.linear = nn.Linear(features, classes)

    def forward(self, x):
        return torch.softmax(self.linear(x), dim=-1)


def get_inputs():
    return [torch.randn(BATCH, FEATURES)]


def get_init_inputs():
    return [FEATURES, CLASSES]
