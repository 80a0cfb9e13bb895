"""A linear layer, group norm, minimum over features, a bias of channels."""

import torch
import torch.nn as nn

BATCH = 5
CHANNELS = 12

CASES = [
    {"BATCH": 2, "CHANNELS": 8},
]
REALISTIC = {"BATCH": 1024, "CHANNELS": 8192}


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.linear, self.norm = nn.Linear(channels, channels), nn.GroupNorm(4, channels)
        self.bias = nn.Parameter(torch.randn(1, channels, 1, 1))

    def forward(self, x):
        x = torch.min(self.norm(self.linear(x)), dim=1, keepdim=True)[0]
        return x + self.bias


def get_inputs():
    return [torch.randn(BATCH, CHANNELS)]


def get_init_inputs():
    return [CHANNELS]
