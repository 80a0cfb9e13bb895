"""MobileNet's inverted residual: expand, depthwise, project, add; evaluation mode."""

import torch
import torch.nn as nn
import torch.nn.functional as F

TRAINING = False
BATCH = 2
WIDTH = 8
SIZE = 9

CASES = [
    {"BATCH": 1, "WIDTH": 3, "SIZE": 5},
]
REALISTIC = {"BATCH": 64, "WIDTH": 32, "SIZE": 112}


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        hidden = 4 * width
        self.expand = nn.Conv2d(width, hidden, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(hidden)
        self.depthwise = nn.Conv2d(hidden, hidden, 3, padding=1, groups=hidden, bias=False)
        self.norm2 = nn.BatchNorm2d(hidden)
        self.project = nn.Conv2d(hidden, width, 1, bias=False)
        self.norm3 = nn.BatchNorm2d(width)

    def forward(self, x):
        y = F.relu6(self.norm1(self.expand(x)))
        y = F.relu6(self.norm2(self.depthwise(y)))
        return x + self.norm3(self.project(y))


def get_inputs():
    return [torch.randn(BATCH, WIDTH, SIZE, SIZE)]


def get_init_inputs():
    return [WIDTH]
