"""Mean over the pixels of an image, and gradients, fp32."""

import torch
import torch.nn as nn

BATCH = 2
CHANNELS = 6
HEIGHT = 14
WIDTH = 18

CASES = [
    {"BATCH": 1, "CHANNELS": 4, "HEIGHT": 7, "WIDTH": 9},
]
REALISTIC = {"BATCH": 16, "CHANNELS": 64, "HEIGHT": 64, "WIDTH": 64}
GRADIENTS = True


class Model(nn.Module):
    def forward(self, x):
        return x.mean((2, 3))


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, HEIGHT, WIDTH)]


def get_init_inputs():
    return []
