"""The first layer of an image network: three channels, a large kernel and stride."""

import torch
import torch.nn as nn

BATCH = 2
CHANNELS_IN = 3
CHANNELS_OUT = 16
HEIGHT = 24
WIDTH = 20

CASES = [
    {"BATCH": 1, "CHANNELS_OUT": 5},
]
REALISTIC = {"BATCH": 64, "CHANNELS_IN": 3, "CHANNELS_OUT": 96, "HEIGHT": 224, "WIDTH": 224}


class Model(nn.Module):
    def __init__(self, channels_in, channels_out):
        super().__init__()
        self.conv = nn.Conv2d(channels_in, channels_out, kernel_size=7, stride=4, padding=3)

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS_IN, HEIGHT, WIDTH)]


def get_init_inputs():
    return [CHANNELS_IN, CHANNELS_OUT]
