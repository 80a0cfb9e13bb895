"""Bilinear reading of an image at places that a tensor says."""

import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 2
CHANNELS = 3
HEIGHT = 7
WIDTH = 9

CASES = [
    {"BATCH": 1, "CHANNELS": 2, "HEIGHT": 5, "WIDTH": 4},
]
REALISTIC = {"BATCH": 16, "CHANNELS": 32, "HEIGHT": 128, "WIDTH": 128}


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, grid):
        return F.grid_sample(x, grid, align_corners=False)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, HEIGHT, WIDTH), torch.rand(BATCH, 6, 5, 2) * 2.2 - 1.1]


def get_init_inputs():
    return []
