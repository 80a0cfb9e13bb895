"""conv3d with bias and padding, NCDHW, fp32: few channels, so a direct convolution is enough."""

import torch
import torch.nn as nn

BATCH, CHANNELS_IN, CHANNELS_OUT, DEPTH, HEIGHT, WIDTH = 1, 4, 8, 7, 12, 14
KERNEL, PADDING = 3, 1

CASES = [
    {"name": "one voxel", "CHANNELS_IN": 1, "CHANNELS_OUT": 1, "DEPTH": 1, "HEIGHT": 1, "WIDTH": 1},
    {"name": "prime", "BATCH": 2, "CHANNELS_IN": 3, "CHANNELS_OUT": 5, "DEPTH": 3, "HEIGHT": 5, "WIDTH": 11},
    {"name": "even kernel, no padding", "DEPTH": 4, "HEIGHT": 9, "WIDTH": 6, "KERNEL": 2, "PADDING": 0},
]


class Model(nn.Module):
    def __init__(self, channels_in, channels_out, kernel, padding):
        super().__init__()
        self.conv = nn.Conv3d(channels_in, channels_out, kernel, padding=padding)

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS_IN, DEPTH, HEIGHT, WIDTH)]


def get_init_inputs():
    return [CHANNELS_IN, CHANNELS_OUT, KERNEL, PADDING]
