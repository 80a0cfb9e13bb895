"""Depthwise conv2d (one filter a channel) followed by ReLU6, NCHW, fp32: bound by memory, not by arithmetic."""

import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH, CHANNELS, HEIGHT, WIDTH = 2, 32, 28, 36
KERNEL, STRIDE = 3, 1

CASES = [
    {"name": "one pixel", "BATCH": 1, "CHANNELS": 1, "HEIGHT": 1, "WIDTH": 1},
    {"name": "prime, stride 2", "CHANNELS": 5, "HEIGHT": 13, "WIDTH": 17, "STRIDE": 2},
    {"name": "block + 1, 5x5", "CHANNELS": 3, "HEIGHT": 19, "WIDTH": 27, "KERNEL": 5},
]


class Model(nn.Module):
    def __init__(self, channels, kernel, stride):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, kernel, stride=stride, padding=kernel // 2, groups=channels)

    def forward(self, x):
        return F.relu6(self.conv(x))


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, HEIGHT, WIDTH) * 4.0]


def get_init_inputs():
    return [CHANNELS, KERNEL, STRIDE]
