"""3-D convolution, four activations, bias."""

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
    def __init__(self, channels_in, channels_out):
        super().__init__()
        self.conv = nn.Conv3d(channels_in, channels_out, 3)
        self.bias = nn.Parameter(torch.randn(channels_out, 1, 1, 1))

    def forward(self, x):
        y = F.gelu(F.leaky_relu(torch.relu(self.conv(x)), 0.01))
        return torch.sigmoid(y) + self.bias


def get_inputs():
    return [torch.randn(BATCH, CHANNELS_IN, DEPTH, HEIGHT, WIDTH)]


def get_init_inputs():
    return [CHANNELS_IN, CHANNELS_OUT]
