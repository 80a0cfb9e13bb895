"""Max pooling that also says where each maximum lies."""

import torch
import torch.nn as nn

BATCH = 2
CHANNELS = 5
HEIGHT = 9
WIDTH = 12

CASES = [
    {"BATCH": 1, "CHANNELS": 3, "HEIGHT": 7, "WIDTH": 8},
]
REALISTIC = {"BATCH": 32, "CHANNELS": 64, "HEIGHT": 256, "WIDTH": 256}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.pool = nn.MaxPool2d(3, stride=2, padding=1, dilation=1, return_indices=True)

    def forward(self, x):
        return self.pool(x)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, HEIGHT, WIDTH)]


def get_init_inputs():
    return []
