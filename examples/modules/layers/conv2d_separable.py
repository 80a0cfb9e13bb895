"""Depthwise, then 1x1 convolution."""

import torch
import torch.nn as nn

BATCH = 2
CHANNELS_IN = 8
CHANNELS_OUT = 12
HEIGHT = 9
WIDTH = 12

CASES = [
    {"CHANNELS_IN": 3, "CHANNELS_OUT": 5},
]
REALISTIC = {"BATCH": 16, "CHANNELS_IN": 64, "CHANNELS_OUT": 128, "HEIGHT": 128, "WIDTH": 128}


class Model(nn.Module):
    def __init__(self, channels_in, channels_out):
        super().__init__()
        self.depthwise = nn.Conv2d(channels_in, channels_in, 3, padding=1, groups=channels_in)
        self.pointwise = nn.Conv2d(channels_in, channels_out, 1)

    def forward(self, x):
        return self.pointwise(self.depthwise(x))


def get_inputs():
    return [torch.randn(BATCH, CHANNELS_IN, HEIGHT, WIDTH)]


def get_init_inputs():
    return [CHANNELS_IN, CHANNELS_OUT]
