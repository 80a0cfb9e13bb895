"""Transposed convolution, mean over pixels, bias, log-sum-exp over channels, sum."""

import torch
import torch.nn as nn

BATCH = 2
CHANNELS = 3
SIZE = 10

CASES = [
    {"BATCH": 1, "CHANNELS": 2, "SIZE": 7},
]
REALISTIC = {"BATCH": 16, "CHANNELS": 64, "SIZE": 256}


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.ConvTranspose2d(channels, 8, 3)
        self.bias = nn.Parameter(torch.randn(8, 1, 1))

    def forward(self, x):
        x = torch.mean(self.conv(x), dim=(2, 3), keepdim=True) + self.bias
        x = torch.logsumexp(x, dim=1, keepdim=True)
        return torch.sum(x, dim=(2, 3)) * 10.0


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, SIZE, SIZE)]


def get_init_inputs():
    return [CHANNELS]
