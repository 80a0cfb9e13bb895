"""A linear layer, a learnt scale, batch normalisation in training mode."""

import torch
import torch.nn as nn

BATCH = 5
CHANNELS = 12

CASES = [
    {"BATCH": 2, "CHANNELS": 8},
]
REALISTIC = {"BATCH": 16384, "CHANNELS": 4096}


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.linear, self.norm = nn.Linear(channels, 6), nn.BatchNorm1d(6, eps=1e-5, momentum=0.1)
        self.scale = nn.Parameter(torch.randn(6))

    def forward(self, x):
        return self.norm(self.linear(x) * self.scale)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS)]


def get_init_inputs():
    return [CHANNELS]
