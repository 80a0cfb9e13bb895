"""Squeeze and expand: a fire module between pools, and a convolution as classifier."""

import torch
import torch.nn as nn

BATCH = 2
CHANNELS = 6
SIZE = 21

CASES = [
    {"BATCH": 1, "CHANNELS": 3, "SIZE": 15},
]
REALISTIC = {"BATCH": 16, "CHANNELS": 96, "SIZE": 224}


class Fire(nn.Module):
    def __init__(self, inputs, squeeze, expand):
        super().__init__()
        self.squeeze = nn.Conv2d(inputs, squeeze, kernel_size=1)
        self.activation = nn.ReLU(inplace=True)
        self.expand1 = nn.Conv2d(squeeze, expand, kernel_size=1)
        self.expand3 = nn.Conv2d(squeeze, expand, kernel_size=3, padding=1)

    def forward(self, x):
        x = self.activation(self.squeeze(x))
        return torch.cat([self.activation(self.expand1(x)), self.activation(self.expand3(x))], 1)


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, channels, kernel_size=7, stride=2),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(kernel_size=3, stride=2, ceil_mode=True),
            Fire(channels, 4, 6),
            Fire(12, 4, 8),
        )
        self.classifier = nn.Sequential(
            nn.Dropout(p=0.0), nn.Conv2d(16, 7, kernel_size=1), nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d((1, 1))
        )

    def forward(self, x):
        return torch.flatten(self.classifier(self.features(x)), 1)


def get_inputs():
    return [torch.randn(BATCH, 3, SIZE, SIZE)]


def get_init_inputs():
    return [CHANNELS]
