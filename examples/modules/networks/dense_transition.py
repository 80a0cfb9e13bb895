"""Dense layers that join all before them, and a transition with average pooling, in training mode."""

import torch
import torch.nn as nn

BATCH = 2
CHANNELS = 6
SIZE = 8

CASES = [
    {"BATCH": 3, "CHANNELS": 4, "SIZE": 6},
]
REALISTIC = {"BATCH": 10, "CHANNELS": 64, "SIZE": 112}


class Model(nn.Module):
    def __init__(self, channels, growth=4):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Sequential(
                nn.BatchNorm2d(channels + i * growth),
                nn.ReLU(inplace=True),
                nn.Conv2d(channels + i * growth, growth, kernel_size=3, padding=1, bias=False),
                nn.Dropout(0.0),
            )
            for i in range(3)
        )
        total = channels + 3 * growth
        self.transition = nn.Sequential(
            nn.BatchNorm2d(total),
            nn.ReLU(inplace=True),
            nn.Conv2d(total, total // 2, 1, bias=False),
            nn.AvgPool2d(2, 2),
        )

    def forward(self, x):
        features = [x]
        for layer in self.layers:
            features.append(layer(x))
            x = torch.cat(features, 1)
        return self.transition(x)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, SIZE, SIZE)]


def get_init_inputs():
    return [CHANNELS]
