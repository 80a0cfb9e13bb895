"""A GRU over a sequence and a head on its last state."""

import torch
import torch.nn as nn

BATCH = 3
TIME = 6
WIDTH_IN = 10
WIDTH = 16

CASES = [
    {"BATCH": 1, "WIDTH_IN": 3, "WIDTH": 8},
]
REALISTIC = {"BATCH": 64, "TIME": 64, "WIDTH_IN": 128, "WIDTH": 256}


class Model(nn.Module):
    def __init__(self, width_in, width):
        super().__init__()
        self.gru = nn.GRU(width_in, width, batch_first=True)
        self.head = nn.Linear(width, 4)

    def forward(self, x):
        y, _ = self.gru(x)
        return self.head(y[:, -1])


def get_inputs():
    return [torch.randn(BATCH, TIME, WIDTH_IN)]


def get_init_inputs():
    return [WIDTH_IN, WIDTH]
