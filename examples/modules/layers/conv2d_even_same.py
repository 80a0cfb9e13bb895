"""Convolutions with even kernels, uneven padding and a border that reflects."""

import torch
import torch.nn as nn

BATCH = 2
CHANNELS = 5
HEIGHT = 9
WIDTH = 12

CASES = [
    {"BATCH": 1, "CHANNELS": 3, "HEIGHT": 7, "WIDTH": 8},
]
REALISTIC = {"BATCH": 16, "CHANNELS": 32, "HEIGHT": 128, "WIDTH": 128}


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.even = nn.Conv2d(channels, 8, (4, 2), padding="same")
        self.mirrored = nn.Conv2d(8, 6, 3, padding=2, padding_mode="reflect", dilation=2)

    def forward(self, x):
        return self.mirrored(self.even(x))


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, HEIGHT, WIDTH)]


def get_init_inputs():
    return [CHANNELS]
