"""Three-dimensional convolution, minimum over depth, softmax over channels."""

import torch
import torch.nn as nn

BATCH = 2
CHANNELS = 3
DEPTH = 4
SIZE = 6

CASES = [
    {"BATCH": 1, "CHANNELS": 2, "DEPTH": 3, "SIZE": 5},
]
REALISTIC = {"BATCH": 32, "CHANNELS": 3, "DEPTH": 24, "SIZE": 64}


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv3d(channels, 6, 3)

    def forward(self, x):
        x = torch.min(self.conv(x), dim=2)[0]
        return torch.softmax(x, dim=1)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, DEPTH, SIZE, SIZE)]


def get_init_inputs():
    return [CHANNELS]
