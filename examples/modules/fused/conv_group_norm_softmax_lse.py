"""Convolution, group norm, tanh, hard swish, residual, log-sum-exp over channels."""

import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 2
CHANNELS_IN = 6
CHANNELS_OUT = 8
HEIGHT = 10
WIDTH = 12

CASES = [
    {"BATCH": 1, "CHANNELS_IN": 3, "CHANNELS_OUT": 4, "HEIGHT": 7, "WIDTH": 6},
]
REALISTIC = {"BATCH": 32, "CHANNELS_IN": 32, "CHANNELS_OUT": 64, "HEIGHT": 64, "WIDTH": 64}


class Model(nn.Module):
    def __init__(self, channels_in, channels_out):
        super().__init__()
        self.conv = nn.Conv2d(channels_in, channels_out, 3)
        self.norm = nn.GroupNorm(2, channels_out)

    def forward(self, x):
        y = self.conv(x)
        z = y + F.hardswish(torch.tanh(self.norm(y)))
        return torch.logsumexp(z, dim=1, keepdim=True)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS_IN, HEIGHT, WIDTH)]


def get_init_inputs():
    return [CHANNELS_IN, CHANNELS_OUT]
