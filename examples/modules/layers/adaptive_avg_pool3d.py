"""Adaptive average pooling of volumes."""

import torch
import torch.nn as nn

BATCH = 2
CHANNELS = 3
DEPTH = 6
HEIGHT = 9
WIDTH = 8

CASES = [
    {"BATCH": 1, "CHANNELS": 2, "DEPTH": 4, "HEIGHT": 5, "WIDTH": 7},
]
REALISTIC = {"BATCH": 16, "CHANNELS": 32, "DEPTH": 32, "HEIGHT": 64, "WIDTH": 64}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.pool = nn.AdaptiveAvgPool3d((2, 3, 4))

    def forward(self, x):
        return self.pool(x)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, DEPTH, HEIGHT, WIDTH)]


def get_init_inputs():
    return []
