"""Two bidirectional GRU layers over sequences first, and their last states."""

import torch
import torch.nn as nn

BATCH = 3
TIME = 7
WIDTH = 5
HIDDEN = 8

CASES = [
    {"BATCH": 1, "TIME": 3, "WIDTH": 4, "HIDDEN": 4},
]
REALISTIC = {"BATCH": 10, "TIME": 512, "WIDTH": 128, "HIDDEN": 256}


class Model(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.gru = nn.GRU(width, hidden, 2, bias=True, bidirectional=True)

    def forward(self, x, h0):
        out, last = self.gru(x, h0)
        return out, last


def get_inputs():
    return [torch.randn(TIME, BATCH, WIDTH), torch.randn(4, BATCH, HIDDEN)]


def get_init_inputs():
    return [WIDTH, HIDDEN]
