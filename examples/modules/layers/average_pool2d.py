"""Average pooling, 2-dimensional, padding counted."""

import torch
import torch.nn as nn

BATCH = 2
CHANNELS = 3
HEIGHT = 9
WIDTH = 11

CASES = [
    {"BATCH": 1, "CHANNELS": 1, "HEIGHT": 6, "WIDTH": 6},
]
REALISTIC = {"BATCH": 16, "CHANNELS": 32, "HEIGHT": 256, "WIDTH": 256}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.pool = nn.AvgPool2d(3, stride=2, padding=1)

    def forward(self, x):
        return self.pool(x)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, HEIGHT, WIDTH) - 0.5]


def get_init_inputs():
    return []
