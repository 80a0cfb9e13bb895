"""Transposed convolution with groups, dilation, odd strides, padding and output padding."""

import torch
import torch.nn as nn

BATCH = 2
CHANNELS = 6
HEIGHT = 5
WIDTH = 7

CASES = [
    {"BATCH": 1, "CHANNELS": 3, "HEIGHT": 4, "WIDTH": 3},
]
REALISTIC = {"BATCH": 16, "CHANNELS": 96, "HEIGHT": 64, "WIDTH": 128}


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.ConvTranspose2d(
            channels,
            2 * channels,
            (3, 5),
            stride=(2, 3),
            padding=(1, 2),
            output_padding=(1, 1),
            dilation=(2, 1),
            groups=3,
        )

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, HEIGHT, WIDTH)]


def get_init_inputs():
    return [CHANNELS]
