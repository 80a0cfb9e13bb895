"""A gated diagonal recurrence by cumulative sums of logarithms."""

import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 2
TIME = 14
WIDTH = 10

CASES = [
    {"BATCH": 1, "TIME": 3, "WIDTH": 4},
]
REALISTIC = {"BATCH": 16, "TIME": 64, "WIDTH": 1024}


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gate = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        gate = F.logsigmoid(self.gate(x))
        total = torch.cumsum(gate, dim=1)
        weighted = torch.cumsum(self.value(x) * torch.exp(-total), dim=1) * torch.exp(total)
        return self.out(weighted * F.silu(x))


def get_inputs():
    return [torch.randn(BATCH, TIME, WIDTH)]


def get_init_inputs():
    return [WIDTH]
