"""Depthwise causal convolution over time, as in state-space layers."""

import torch
import torch.nn as nn

BATCH = 2
TIME = 19
CHANNELS = 6

CASES = [
    {"BATCH": 1, "TIME": 5, "CHANNELS": 3},
]
REALISTIC = {"BATCH": 16, "TIME": 4096, "CHANNELS": 1024}


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv1d(channels, channels, 4, groups=channels, padding=3)
        self.act = nn.SiLU()

    def forward(self, x):
        y = self.conv(x.transpose(1, 2))[..., : x.shape[1]]
        return self.act(y).transpose(1, 2)


def get_inputs():
    return [torch.randn(BATCH, TIME, CHANNELS)]


def get_init_inputs():
    return [CHANNELS]
