"""A linear layer and a chain of reductions over one element."""

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
        self.linear = nn.Linear(channels, 6)

    def forward(self, x):
        x = torch.sum(self.linear(x), dim=1, keepdim=True)
        x = torch.max(x, dim=1, keepdim=True)[0]
        x = torch.mean(x, dim=1, keepdim=True)
        x = torch.logsumexp(x, dim=1, keepdim=True)
        return torch.logsumexp(x, dim=1, keepdim=True)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS)]


def get_init_inputs():
    return [CHANNELS]
