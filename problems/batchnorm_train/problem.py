"""Batch normalisation in training mode, NCHW, fp32: batch statistics, and running statistics as state.

The module's state is part of the contract: after each call the running mean, the running variance
(unbiased, unlike the one used to normalise) and the batch counter must be the reference's.
"""

import torch
import torch.nn as nn

TRAINING = True
BATCH, CHANNELS, HEIGHT, WIDTH = 8, 32, 14, 14

CASES = [
    {"name": "two values a channel", "BATCH": 2, "CHANNELS": 1, "HEIGHT": 1, "WIDTH": 1},
    {"name": "prime", "BATCH": 3, "CHANNELS": 7, "HEIGHT": 5, "WIDTH": 11},
    {"name": "block + 1", "BATCH": 5, "CHANNELS": 2, "HEIGHT": 5, "WIDTH": 41},
]


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x):
        return self.norm(x)


def get_inputs():
    offset = torch.randn(1, CHANNELS, 1, 1)
    return [torch.randn(BATCH, CHANNELS, HEIGHT, WIDTH) * 1.5 + offset]


def get_init_inputs():
    return [CHANNELS]
