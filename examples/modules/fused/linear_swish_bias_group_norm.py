"""A linear layer, Swish, bias, group norm."""

import torch
import torch.nn as nn

BATCH = 5
CHANNELS = 12

CASES = [
    {"BATCH": 2, "CHANNELS": 8},
]
REALISTIC = {"BATCH": 32768, "CHANNELS": 1024}


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.linear, self.norm = nn.Linear(channels, channels), nn.GroupNorm(4, channels)
        self.bias = nn.Parameter(torch.randn(channels))

    def forward(self, x):
        x = self.linear(x)
        return self.norm(torch.sigmoid(x) * x + self.bias)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS)]


def get_init_inputs():
    return [CHANNELS]
