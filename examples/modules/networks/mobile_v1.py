"""Depthwise separable convolutions in pairs with batch normalisation, as in the first MobileNet."""

import torch
import torch.nn as nn

BATCH = 2
WIDTH = 4
SIZE = 12

CASES = [
    {"BATCH": 1, "WIDTH": 2, "SIZE": 8},
]
REALISTIC = {"BATCH": 10, "WIDTH": 32, "SIZE": 224}


def first(inputs, outputs, stride):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)
    )


def separable(inputs, outputs, stride):
    return nn.Sequential(
        nn.Conv2d(inputs, inputs, 3, stride, 1, groups=inputs, bias=False),
        nn.BatchNorm2d(inputs),
        nn.ReLU(inplace=True),
        nn.Conv2d(inputs, outputs, 1, 1, 0, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(inplace=True),
    )


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.model = nn.Sequential(
            first(3, width, 2),
            separable(width, 2 * width, 1),
            separable(2 * width, 4 * width, 2),
            nn.AdaptiveAvgPool2d(1),
        )
        self.fc = nn.Linear(4 * width, 6)

    def forward(self, x):
        x = self.model(x)
        return self.fc(x.view(x.size(0), -1))


def get_inputs():
    return [torch.randn(BATCH + 1, 3, SIZE, SIZE)]


def get_init_inputs():
    return [WIDTH]
