"""One step of an Elman network on a given state."""

import torch
import torch.nn as nn

BATCH = 5
WIDTH_IN = 12
WIDTH = 20
CLASSES = 6

CASES = [
    {"BATCH": 1, "WIDTH_IN": 3, "WIDTH": 4, "CLASSES": 2},
]
REALISTIC = {"BATCH": 512, "WIDTH_IN": 4096, "WIDTH": 4096, "CLASSES": 1024}


class Model(nn.Module):
    def __init__(self, width_in, width, classes):
        super().__init__()
        self.inner = nn.Linear(width_in + width, width)
        self.outer = nn.Linear(width, classes)

    def forward(self, x, hidden):
        hidden = torch.tanh(self.inner(torch.cat((x, hidden), dim=1)))
        return self.outer(hidden), hidden


def get_inputs():
    return [torch.randn(BATCH, WIDTH_IN), torch.randn(BATCH, WIDTH)]


def get_init_inputs():
    return [WIDTH_IN, WIDTH, CLASSES]
