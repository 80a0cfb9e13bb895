"""relu(conv2d(x)) with stride and padding, NCHW, fp32: the usual convolution block.

The height differs from the width and the kernel is not square, so that swapped indices show.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH, CHANNELS_IN, CHANNELS_OUT, HEIGHT, WIDTH = 2, 12, 32, 26, 30
KERNEL_H, KERNEL_W, STRIDE, PADDING = 3, 5, 1, 1

CASES = [
    {"name": "one output", "BATCH": 1, "CHANNELS_IN": 1, "CHANNELS_OUT": 1, "HEIGHT": 1, "WIDTH": 3},
    {"name": "prime, stride 2", "CHANNELS_IN": 5, "CHANNELS_OUT": 13, "HEIGHT": 17, "WIDTH": 19, "STRIDE": 2},
    {"name": "block + 1", "BATCH": 1, "CHANNELS_IN": 3, "CHANNELS_OUT": 33, "HEIGHT": 5, "WIDTH": 15},
    {"name": "pointwise", "CHANNELS_IN": 17, "KERNEL_H": 1, "KERNEL_W": 1, "PADDING": 0, "HEIGHT": 9, "WIDTH": 7},
]


class Model(nn.Module):
    def __init__(self, channels_in, channels_out, kernel, stride, padding):
        super().__init__()
        self.conv = nn.Conv2d(channels_in, channels_out, kernel, stride=stride, padding=padding)

    def forward(self, x):
        return F.relu(self.conv(x))


def get_inputs():
    return [torch.randn(BATCH, CHANNELS_IN, HEIGHT, WIDTH)]


def get_init_inputs():
    return [CHANNELS_IN, CHANNELS_OUT, (KERNEL_H, KERNEL_W), STRIDE, PADDING]
