"""Squeeze and excitation: channels scaled by what their means say."""

import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 3
CHANNELS = 16
SIZE = 10

CASES = [
    {"BATCH": 1, "CHANNELS": 8, "SIZE": 5},
]
REALISTIC = {"BATCH": 32, "CHANNELS": 256, "SIZE": 56}


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.down = nn.Linear(channels, channels // 4)
        self.up = nn.Linear(channels // 4, channels)

    def forward(self, x):
        s = x.mean(dim=(2, 3))
        s = torch.sigmoid(self.up(F.relu(self.down(s))))
        return x * s[:, :, None, None]


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, SIZE, SIZE)]


def get_init_inputs():
    return [CHANNELS]
