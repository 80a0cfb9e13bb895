"""Three-dimensional transposed convolution, log-sum-exp, a hand-written hardswish, a bias, clamps and a maximum."""

import torch
import torch.nn as nn

BATCH = 2
CHANNELS = 3
DEPTH = 4
SIZE = 6

CASES = [
    {"BATCH": 1, "CHANNELS": 2, "DEPTH": 3, "SIZE": 5},
]
REALISTIC = {"BATCH": 16, "CHANNELS": 32, "DEPTH": 16, "SIZE": 32}


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.ConvTranspose3d(channels, 5, 3, stride=2, padding=1)
        self.bias = nn.Parameter(torch.randn(1, 1, 1, 1, 1))

    def forward(self, x):
        x = torch.logsumexp(self.conv(x), dim=1, keepdim=True)
        x = x * torch.sigmoid(x + 3) / 6 - self.bias
        return torch.max(torch.clamp(x, min=-5, max=5), dim=1, keepdim=True)[0]


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, DEPTH, SIZE, SIZE)]


def get_init_inputs():
    return [CHANNELS]
