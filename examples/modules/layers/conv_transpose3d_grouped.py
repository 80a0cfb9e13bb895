"""Grouped three-dimensional transposed convolution, another stride for each axis."""

import torch
import torch.nn as nn

BATCH = 1
CHANNELS = 4
DEPTH = 3
HEIGHT = 4
WIDTH = 5

CASES = [
    {"BATCH": 2, "CHANNELS": 2, "DEPTH": 2, "HEIGHT": 3, "WIDTH": 3},
]
REALISTIC = {"BATCH": 8, "CHANNELS": 32, "DEPTH": 12, "HEIGHT": 24, "WIDTH": 48}


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.ConvTranspose3d(
            channels, channels, (3, 5, 7), stride=(2, 2, 2), padding=(1, 2, 3), output_padding=(1, 1, 1), groups=2
        )

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, DEPTH, HEIGHT, WIDTH)]


def get_init_inputs():
    return [CHANNELS]
