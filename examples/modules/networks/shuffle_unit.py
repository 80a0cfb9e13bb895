"""ShuffleNet's unit: grouped 1x1 convolutions around a channel shuffle; evaluation mode."""

import torch
import torch.nn as nn
import torch.nn.functional as F

TRAINING = False
BATCH = 2
WIDTH = 12
SIZE = 7

CASES = [
    {"BATCH": 1, "WIDTH": 6, "SIZE": 5},
]
REALISTIC = {"BATCH": 32, "WIDTH": 240, "SIZE": 28}


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.squeeze = nn.Conv2d(width, width, 1, groups=3, bias=False)
        self.norm1 = nn.BatchNorm2d(width)
        self.depthwise = nn.Conv2d(width, width, 3, padding=1, groups=width, bias=False)
        self.norm2 = nn.BatchNorm2d(width)
        self.expand = nn.Conv2d(width, width, 1, groups=3, bias=False)
        self.norm3 = nn.BatchNorm2d(width)

    def forward(self, x):
        y = F.relu(self.norm1(self.squeeze(x)))
        batch, channels, height, width = y.shape
        y = y.view(batch, 3, channels // 3, height, width).transpose(1, 2).reshape(batch, channels, height, width)
        y = self.norm2(self.depthwise(y))
        return F.relu(self.norm3(self.expand(y)) + x)


def get_inputs():
    return [torch.randn(BATCH, WIDTH, SIZE, SIZE)]


def get_init_inputs():
    return [WIDTH]
