"""3-D convolution, softmax over channels, max pooling twice."""

import torch
import torch.nn as nn

BATCH = 1
CHANNELS_IN = 4
CHANNELS_OUT = 6
DEPTH = 5
HEIGHT = 6
WIDTH = 7

CASES = [
    {"BATCH": 2, "CHANNELS_IN": 2, "CHANNELS_OUT": 4},
]
REALISTIC = {"BATCH": 16, "CHANNELS_IN": 16, "CHANNELS_OUT": 32, "DEPTH": 16, "HEIGHT": 32, "WIDTH": 32}


class Model(nn.Module):
    def __init__(self, channels_in, channels_out):
        super().__init__()
        self.conv = nn.Conv3d(channels_in, channels_out, 3, padding=1)
        self.pool = nn.MaxPool3d(2, padding=1)

    def forward(self, x):
        return self.pool(self.pool(torch.softmax(self.conv(x), dim=1)))


def get_inputs():
    return [torch.randn(BATCH, CHANNELS_IN, DEPTH, HEIGHT, WIDTH)]


def get_init_inputs():
    return [CHANNELS_IN, CHANNELS_OUT]
