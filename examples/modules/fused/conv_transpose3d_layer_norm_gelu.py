"""Transposed 3-D convolution, a scalar added, layer norm over the width, GELU."""

import torch
import torch.nn as nn
import torch.nn.functional as F

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
    def __init__(self, channels_in, channels_out, width):
        super().__init__()
        self.conv = nn.ConvTranspose3d(channels_in, channels_out, 3, stride=2, padding=1, output_padding=1)
        self.weight = nn.Parameter(torch.tensor(0.7))
        self.norm = nn.LayerNorm(2 * width)

    def forward(self, x):
        return F.gelu(self.norm(self.conv(x) + self.weight))


def get_inputs():
    return [torch.randn(BATCH, CHANNELS_IN, DEPTH, HEIGHT, WIDTH)]


def get_init_inputs():
    return [CHANNELS_IN, CHANNELS_OUT, WIDTH]
