"""Bilinear and bicubic enlargement."""

import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 2
CHANNELS = 5
HEIGHT = 9
WIDTH = 12

CASES = [
    {"BATCH": 1, "CHANNELS": 3, "HEIGHT": 7, "WIDTH": 8},
]
REALISTIC = {"BATCH": 16, "CHANNELS": 32, "HEIGHT": 128, "WIDTH": 128}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False)

    def forward(self, x):
        return self.up(x), F.interpolate(x, size=(13, 17), mode="bicubic", align_corners=True)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, HEIGHT, WIDTH)]


def get_init_inputs():
    return []
