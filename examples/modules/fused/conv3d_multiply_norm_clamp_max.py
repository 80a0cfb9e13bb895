"""Convolution, a learnt factor, instance norm, clamp, the factor again, maximum over channels."""

import torch
import torch.nn as nn

BATCH = 2
CHANNELS = 3
DEPTH = 4
SIZE = 6

CASES = [
    {"BATCH": 1, "CHANNELS": 2, "DEPTH": 3, "SIZE": 5},
]
REALISTIC = {"BATCH": 128, "CHANNELS": 3, "DEPTH": 16, "SIZE": 32}


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv3d(channels, 6, 3, padding=1)
        self.factor = nn.Parameter(torch.randn(6, 1, 1, 1))
        self.norm = nn.InstanceNorm3d(6)

    def forward(self, x):
        x = torch.clamp(self.norm(self.conv(x) * self.factor), -1.0, 1.0) * self.factor
        return torch.max(x, dim=1)[0]


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, DEPTH, SIZE, SIZE)]


def get_init_inputs():
    return [CHANNELS]
