"""Max pooling and its partial inverse."""

import torch
import torch.nn as nn

BATCH = 2
CHANNELS = 3
HEIGHT = 8
WIDTH = 12

CASES = [
    {"BATCH": 1, "CHANNELS": 2, "HEIGHT": 6, "WIDTH": 8},
]
REALISTIC = {"BATCH": 32, "CHANNELS": 64, "HEIGHT": 256, "WIDTH": 256}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.pool, self.back = nn.MaxPool2d(2, return_indices=True), nn.MaxUnpool2d(2)

    def forward(self, x):
        values, places = self.pool(x)
        return self.back(values, places)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, HEIGHT, WIDTH)]


def get_init_inputs():
    return []
