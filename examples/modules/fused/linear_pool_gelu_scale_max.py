"""A linear layer, average pooling over features, GELU, scale, maximum."""

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
        self.pool = nn.AvgPool1d(kernel_size=4)

    def forward(self, x):
        x = self.pool(self.linear(x).unsqueeze(1)).squeeze(1)
        return torch.max(torch.nn.functional.gelu(x) * 2.0, dim=1).values


def get_inputs():
    return [torch.randn(BATCH, CHANNELS)]


def get_init_inputs():
    return [CHANNELS]
