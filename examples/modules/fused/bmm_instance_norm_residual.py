"""A linear layer as an image of one pixel: instance norm, sum and product with the input."""

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
        self.linear, self.norm = (
            nn.Linear(channels, channels),
            nn.InstanceNorm2d(channels, affine=False, track_running_stats=False),
        )

    def forward(self, x):
        y = self.linear(x)
        y = self.norm(y.unsqueeze(1).unsqueeze(1)).squeeze(1).squeeze(1)
        return (y + x) * x


def get_inputs():
    return [torch.randn(BATCH, CHANNELS)]


def get_init_inputs():
    return [CHANNELS]
