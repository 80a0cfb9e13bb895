"""Convolution less a number, hardswish, max pooling and Mish."""

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
        self.pool = nn.MaxPool2d(2)

    def forward(self, x):
        return torch.nn.functional.mish(self.pool(torch.nn.functional.hardswish(self.conv(x) - 0.5)))


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, SIZE, SIZE)]


def get_init_inputs():
    return [CHANNELS]
