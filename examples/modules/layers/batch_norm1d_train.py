"""Batch normalisation of sequences in training mode, without affine weights."""

import torch
import torch.nn as nn

BATCH = 4
CHANNELS = 5
TIME = 11

CASES = [
    {"BATCH": 2, "CHANNELS": 3, "TIME": 4},
]
REALISTIC = {"BATCH": 64, "CHANNELS": 256, "TIME": 4096}


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm1d(channels, affine=False)

    def forward(self, x):
        return self.norm(x)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, TIME)]


def get_init_inputs():
    return [CHANNELS]
