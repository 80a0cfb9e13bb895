"""Local response normalisation over channels."""

import torch
import torch.nn as nn

BATCH = 2
CHANNELS = 9
HEIGHT = 5
WIDTH = 6

CASES = [
    {"BATCH": 1, "CHANNELS": 3, "HEIGHT": 7, "WIDTH": 8},
]
REALISTIC = {"BATCH": 32, "CHANNELS": 64, "HEIGHT": 256, "WIDTH": 256}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LocalResponseNorm(5, alpha=1e-2)

    def forward(self, x):
        return self.norm(x)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, HEIGHT, WIDTH)]


def get_init_inputs():
    return []
