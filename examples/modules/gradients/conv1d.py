"""A convolution of sequences, and gradients, fp32."""

import torch
import torch.nn as nn

BATCH = 3
CHANNELS = 6
LENGTH = 50

CASES = [
    {"BATCH": 1, "CHANNELS": 4, "LENGTH": 11},
]
REALISTIC = {"BATCH": 16, "CHANNELS": 128, "LENGTH": 4096}
GRADIENTS = True


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv1d(channels, channels, 5, padding=2)

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, LENGTH)]


def get_init_inputs():
    return [CHANNELS]
