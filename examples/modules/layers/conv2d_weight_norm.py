"""A convolution whose weights have norms of their own."""

import torch
import torch.nn as nn

BATCH = 2
CHANNELS = 5
HEIGHT = 9
WIDTH = 12

CASES = [
    {"BATCH": 1, "CHANNELS": 3, "HEIGHT": 7, "WIDTH": 8},
]
REALISTIC = {"BATCH": 16, "CHANNELS": 64, "HEIGHT": 64, "WIDTH": 64}


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.utils.parametrizations.weight_norm(nn.Conv2d(channels, 8, 3, padding=1))

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, HEIGHT, WIDTH)]


def get_init_inputs():
    return [CHANNELS]
