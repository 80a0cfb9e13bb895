"""A stem, two residual blocks (the second halves the image), pooling and a classifier."""

import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 2
WIDTH = 8
SIZE = 12
CLASSES = 5

CASES = [
    {"BATCH": 1, "WIDTH": 4, "SIZE": 8, "CLASSES": 3},
]
REALISTIC = {"BATCH": 64, "WIDTH": 64, "SIZE": 56, "CLASSES": 1000}


class Block(nn.Module):
    """Two convolutions and a shortcut."""

    def __init__(self, channels_in, channels_out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels_out, 3, stride=stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels_out)
        self.conv2 = nn.Conv2d(channels_out, channels_out, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels_out)
        self.shortcut = nn.Identity()
        if stride != 1 or channels_in != channels_out:
            self.shortcut = nn.Sequential(
                nn.Conv2d(channels_in, channels_out, 1, stride=stride, bias=False), nn.BatchNorm2d(channels_out)
            )

    def forward(self, x):
        y = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(y)) + self.shortcut(x))


class Model(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(width)
        self.block1 = Block(width, width, 1)
        self.block2 = Block(width, 2 * width, 2)
        self.head = nn.Linear(2 * width, classes)

    def forward(self, x):
        x = F.relu(self.norm(self.stem(x)))
        x = self.block2(self.block1(x))
        return self.head(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))


def get_inputs():
    return [torch.randn(BATCH, 3, SIZE, SIZE)]


def get_init_inputs():
    return [WIDTH, CLASSES]
