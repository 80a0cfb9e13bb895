"""Convolution, tanh, scale, a bias of its own and max pooling."""

import torch
import torch.nn as nn

BATCH = 2
CHANNELS = 3
SIZE = 10

CASES = [
    {"BATCH": 1, "CHANNELS": 2, "SIZE": 7},
]
REALISTIC = {"BATCH": 128, "CHANNELS": 64, "SIZE": 128}


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, 8, 3)
        self.bias = nn.Parameter(torch.randn(8, 1, 1))
        self.pool = nn.MaxPool2d(2)

    def forward(self, x):
        return self.pool(torch.tanh(self.conv(x)) * 2.0 + self.bias)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, SIZE, SIZE)]


def get_init_inputs():
    return [CHANNELS]
