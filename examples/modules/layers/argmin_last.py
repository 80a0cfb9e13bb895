"""Index of the minimum over the last dimension."""

import torch
import torch.nn as nn

BATCH = 5
LENGTH = 130
FEATURES = 67

CASES = [
    {"BATCH": 1, "LENGTH": 3, "FEATURES": 2},
    {"BATCH": 2, "LENGTH": 65, "FEATURES": 300},
]
REALISTIC = {"BATCH": 16, "LENGTH": 2048, "FEATURES": 2048}


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return torch.argmin(x, dim=2)


def get_inputs():
    return [torch.randn(BATCH, LENGTH, FEATURES)]


def get_init_inputs():
    return []
