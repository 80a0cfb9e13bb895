"""Batch normalisation of images in training mode."""

import torch
import torch.nn as nn

BATCH = 4
CHANNELS = 12
HEIGHT = 9
WIDTH = 14

CASES = [
    {"BATCH": 2, "CHANNELS": 3, "HEIGHT": 5, "WIDTH": 7},
]
REALISTIC = {"BATCH": 16, "CHANNELS": 64, "HEIGHT": 256, "WIDTH": 256}


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x):
        return self.norm(x)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, HEIGHT, WIDTH) * 1.5 + 0.3]


def get_init_inputs():
    return [CHANNELS]
