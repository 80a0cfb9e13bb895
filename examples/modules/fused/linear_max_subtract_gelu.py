"""A linear layer, maximum over features, less their mean over the batch, GELU."""

import torch
import torch.nn as nn

BATCH = 5
CHANNELS = 12

CASES = [
    {"BATCH": 2, "CHANNELS": 8},
]
REALISTIC = {"BATCH": 1024, "CHANNELS": 8192}


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.linear = nn.Linear(channels, channels)

    def forward(self, x):
        x = torch.max(self.linear(x), dim=1, keepdim=True).values
        return torch.nn.functional.gelu(x - x.mean(dim=0, keepdim=True))


def get_inputs():
    return [torch.randn(BATCH, CHANNELS)]


def get_init_inputs():
    return [CHANNELS]
