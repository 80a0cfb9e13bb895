"""Transposed one-dimensional convolution with dilation."""

import torch
import torch.nn as nn

BATCH = 2
CHANNELS_IN = 6
CHANNELS_OUT = 10
LENGTH = 33

CASES = [
    {"BATCH": 1, "CHANNELS_IN": 3, "CHANNELS_OUT": 5, "LENGTH": 7},
]
REALISTIC = {"BATCH": 16, "CHANNELS_IN": 64, "CHANNELS_OUT": 64, "LENGTH": 32768}


class Model(nn.Module):
    def __init__(self, channels_in, channels_out):
        super().__init__()
        self.conv = nn.ConvTranspose1d(channels_in, channels_out, kernel_size=3, stride=2, padding=1, dilation=2)

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS_IN, LENGTH)]


def get_init_inputs():
    return [CHANNELS_IN, CHANNELS_OUT]
