"""Average pooling, 1-dimensional, padding counted."""

import torch
import torch.nn as nn

BATCH = 2
CHANNELS = 3
LENGTH = 40

CASES = [
    {"BATCH": 1, "CHANNELS": 1, "LENGTH": 6},
]
REALISTIC = {"BATCH": 16, "CHANNELS": 32, "LENGTH": 65536}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.pool = nn.AvgPool1d(3, stride=2, padding=1)

    def forward(self, x):
        return self.pool(x)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, LENGTH) - 0.5]


def get_init_inputs():
    return []
