"""Bottleneck residual blocks with batch normalisation in training mode and a strided shortcut."""

import torch
import torch.nn as nn

BATCH = 2
WIDTH = 4
SIZE = 9

CASES = [
    {"BATCH": 3, "WIDTH": 2, "SIZE": 6},
]
REALISTIC = {"BATCH": 10, "WIDTH": 64, "SIZE": 112}


def norm_conv(inputs, outputs, kernel, stride=1):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel, stride=stride, padding=kernel // 2, bias=False), nn.BatchNorm2d(outputs)
    )


class Bottleneck(nn.Module):
    expansion = 4

    def __init__(self, inputs, planes, stride):
        super().__init__()
        self.conv1, self.conv2 = norm_conv(inputs, planes, 1), norm_conv(planes, planes, 3, stride)
        self.conv3 = norm_conv(planes, planes * self.expansion, 1)
        self.relu = nn.ReLU(inplace=True)
        self.shortcut = None
        if stride != 1 or inputs != planes * self.expansion:
            self.shortcut = norm_conv(inputs, planes * self.expansion, 1, stride)

    def forward(self, x):
        identity = x if self.shortcut is None else self.shortcut(x)
        out = self.relu(self.conv1(x))
        out = self.relu(self.conv2(out))
        out = self.conv3(out)
        out += identity
        return self.relu(out)


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.stem = nn.Sequential(norm_conv(3, width, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1))
        self.blocks = nn.Sequential(Bottleneck(width, width, 1), Bottleneck(4 * width, width, 2))
        self.head = nn.Linear(4 * width, 5)

    def forward(self, x):
        x = self.blocks(self.stem(x))
        return self.head(torch.flatten(x.mean(dim=(2, 3)), 1))


def get_inputs():
    return [torch.randn(BATCH, 3, 2 * SIZE, 2 * SIZE)]


def get_init_inputs():
    return [WIDTH]
