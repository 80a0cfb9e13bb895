"""Expansion, depthwise convolution, squeeze and excitation, projection, with SiLU."""

import torch
import torch.nn as nn

BATCH = 2
CHANNELS = 4
SIZE = 10

CASES = [
    {"BATCH": 1, "CHANNELS": 3, "SIZE": 7},
]
REALISTIC = {"BATCH": 10, "CHANNELS": 112, "SIZE": 112}


TRAINING = False


class Model(nn.Module):
    def __init__(self, channels, expand=6, kernel=5):
        super().__init__()
        hidden = channels * expand
        self.expand = nn.Sequential(nn.Conv2d(channels, hidden, 1, bias=False), nn.BatchNorm2d(hidden), nn.SiLU())
        self.depth = nn.Sequential(
            nn.Conv2d(hidden, hidden, kernel, 2, kernel // 2, groups=hidden, bias=False),
            nn.BatchNorm2d(hidden),
            nn.SiLU(),
        )
        self.down, self.up = nn.Conv2d(hidden, max(1, channels // 4), 1), nn.Conv2d(max(1, channels // 4), hidden, 1)
        self.project = nn.Sequential(nn.Conv2d(hidden, channels, 1, bias=False), nn.BatchNorm2d(channels))

    def forward(self, x):
        x = self.depth(self.expand(x))
        gate = nn.functional.adaptive_avg_pool2d(x, 1)
        x = x * torch.sigmoid(self.up(nn.functional.silu(self.down(gate))))
        return self.project(x)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, SIZE, SIZE)]


def get_init_inputs():
    return [CHANNELS]
