"""Three-dimensional convolution."""

import torch
import torch.nn as nn

BATCH = 2
CHANNELS_IN = 6
CHANNELS_OUT = 10
DEPTH = 5
HEIGHT = 9
WIDTH = 12

CASES = [
    {"BATCH": 1, "CHANNELS_IN": 3, "CHANNELS_OUT": 5, "DEPTH": 7, "HEIGHT": 7, "WIDTH": 7},
]
REALISTIC = {"BATCH": 8, "CHANNELS_IN": 16, "CHANNELS_OUT": 32, "DEPTH": 24, "HEIGHT": 24, "WIDTH": 24}


class Model(nn.Module):
    def __init__(self, channels_in, channels_out):
        super().__init__()
        self.conv = nn.Conv3d(channels_in, channels_out, kernel_size=3)

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS_IN, DEPTH, HEIGHT, WIDTH)]


def get_init_inputs():
    return [CHANNELS_IN, CHANNELS_OUT]
