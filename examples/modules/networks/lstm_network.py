"""A two-layer LSTM and a head on its last state."""

import torch
import torch.nn as nn

BATCH = 2
TIME = 5
WIDTH_IN = 8
WIDTH = 12

CASES = [
    {"BATCH": 1, "WIDTH_IN": 3, "WIDTH": 8},
]
REALISTIC = {"BATCH": 64, "TIME": 64, "WIDTH_IN": 128, "WIDTH": 256}


class Model(nn.Module):
    def __init__(self, width_in, width):
        super().__init__()
        self.lstm = nn.LSTM(width_in, width, num_layers=2, batch_first=True)
        self.head = nn.Linear(width, 4)

    def forward(self, x):
        y, _ = self.lstm(x)
        return self.head(y[:, -1, :])


def get_inputs():
    return [torch.randn(BATCH, TIME, WIDTH_IN)]


def get_init_inputs():
    return [WIDTH_IN, WIDTH]
