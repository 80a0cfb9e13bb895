"""An inception block: four branches joined over channels."""

import torch
import torch.nn as nn

BATCH = 2
CHANNELS = 6
SIZE = 9

CASES = [
    {"BATCH": 1, "CHANNELS": 4, "SIZE": 6},
]
REALISTIC = {"BATCH": 10, "CHANNELS": 480, "SIZE": 56}


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.one = nn.Conv2d(channels, 8, 1)
        self.three = nn.Sequential(nn.Conv2d(channels, 4, 1), nn.ReLU(), nn.Conv2d(4, 12, 3, padding=1))
        self.five = nn.Sequential(nn.Conv2d(channels, 2, 1), nn.ReLU(), nn.Conv2d(2, 6, 5, padding=2))
        self.pool = nn.Sequential(nn.MaxPool2d(3, stride=1, padding=1), nn.Conv2d(channels, 5, 1))

    def forward(self, x):
        return torch.cat([self.one(x), self.three(x), self.five(x), self.pool(x)], 1)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, SIZE, SIZE)]


def get_init_inputs():
    return [CHANNELS]
