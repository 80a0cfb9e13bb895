"""A grouped bottleneck with a channel shuffle in the middle, as in ShuffleNet."""

import torch
import torch.nn as nn

BATCH = 2
CHANNELS = 12
SIZE = 7

CASES = [
    {"BATCH": 3, "CHANNELS": 6, "SIZE": 5},
]
REALISTIC = {"BATCH": 10, "CHANNELS": 240, "SIZE": 224}


class Shuffle(nn.Module):
    def __init__(self, groups):
        super().__init__()
        self.groups = groups

    def forward(self, x):
        b, c, h, w = x.size()
        x = x.view(b, self.groups, c // self.groups, h, w).transpose(1, 2).contiguous()
        return x.view(b, -1, h, w)


class Model(nn.Module):
    def __init__(self, channels, groups=3):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 1, groups=groups, bias=False)
        self.norm1, self.norm2, self.norm3 = (nn.BatchNorm2d(channels) for _ in range(3))
        self.shuffle = Shuffle(groups)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, groups=channels, bias=False)
        self.conv3 = nn.Conv2d(channels, 2 * channels, 1, groups=groups, bias=False)
        self.norm3 = nn.BatchNorm2d(2 * channels)
        self.shortcut = nn.Sequential(nn.Conv2d(channels, 2 * channels, 1, bias=False), nn.BatchNorm2d(2 * channels))

    def forward(self, x):
        out = torch.relu(self.norm1(self.conv1(x)))
        out = self.norm2(self.conv2(self.shuffle(out)))
        out = torch.relu(self.norm3(self.conv3(out)))
        out += self.shortcut(x)
        return out


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, SIZE, SIZE)]


def get_init_inputs():
    return [CHANNELS]
