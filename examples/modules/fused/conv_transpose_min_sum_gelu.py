"""Transposed convolution, minimum over channels, sum over rows, GELU and a bias."""

import torch
import torch.nn as nn

BATCH = 2
CHANNELS = 3
SIZE = 10

CASES = [
    {"BATCH": 1, "CHANNELS": 2, "SIZE": 7},
]
REALISTIC = {"BATCH": 16, "CHANNELS": 64, "SIZE": 128}


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.ConvTranspose2d(channels, 8, 3, 2, 1, 1)
        self.bias = nn.Parameter(torch.randn(1, 1, 1))

    def forward(self, x):
        x = self.conv(x)
        x = torch.min(x, dim=1, keepdim=True)[0]
        x = torch.sum(x, dim=2, keepdim=True)
        return torch.nn.functional.gelu(x) + self.bias


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, SIZE, SIZE)]


def get_init_inputs():
    return [CHANNELS]
