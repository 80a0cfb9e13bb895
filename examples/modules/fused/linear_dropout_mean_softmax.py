"""A linear layer, dropout of nothing, mean, softmax over the batch."""

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
        self.linear, self.drop = nn.Linear(channels, 6), nn.Dropout(0.0)

    def forward(self, x):
        x = torch.mean(self.drop(self.linear(x)), dim=1, keepdim=True)
        return torch.softmax(x, dim=0)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS)]


def get_init_inputs():
    return [CHANNELS]
