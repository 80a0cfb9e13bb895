"""Batch normalisation in evaluation mode, NCHW, fp32: the running statistics are constants.

`TRAINING = False` asks for `module.eval()`. The statistics start away from 0 and 1, so that a candidate
which computes batch statistics instead is wrong. They are buffers and must not change.
"""

import torch
import torch.nn as nn

TRAINING = False
BATCH, CHANNELS, HEIGHT, WIDTH = 4, 48, 28, 28

CASES = [
    {"name": "one element", "BATCH": 1, "CHANNELS": 1, "HEIGHT": 1, "WIDTH": 1},
    {"name": "prime", "BATCH": 3, "CHANNELS": 5, "HEIGHT": 7, "WIDTH": 13},
    {"name": "block + 1", "BATCH": 2, "CHANNELS": 3, "HEIGHT": 5, "WIDTH": 205},
]


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)
        self.norm.running_mean.copy_(torch.randn(channels))
        self.norm.running_var.copy_(torch.rand(channels) + 0.5)

    def forward(self, x):
        return self.norm(x)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, HEIGHT, WIDTH) * 2.0 + 0.5]


def get_init_inputs():
    return [CHANNELS]
