"""A recurrent cell written as layers, run over all steps of a sequence."""

import torch
import torch.nn as nn

BATCH = 2
TIME = 6
WIDTH = 5
HIDDEN = 8

CASES = [
    {"BATCH": 1, "TIME": 3, "WIDTH": 3, "HIDDEN": 4},
]
REALISTIC = {"BATCH": 8, "TIME": 64, "WIDTH": 1024, "HIDDEN": 256}


class Model(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.step, self.out, self.tanh = nn.Linear(width + hidden, hidden), nn.Linear(hidden, 4), nn.Tanh()

    def forward(self, x, h):
        outputs = []
        for t in range(x.size(0)):
            h = self.tanh(self.step(torch.cat((x[t], h), dim=1)))
            outputs.append(self.out(h))
        return torch.stack(outputs, dim=0)


def get_inputs():
    return [torch.randn(TIME, BATCH, WIDTH), torch.randn(BATCH, HIDDEN)]


def get_init_inputs():
    return [WIDTH, HIDDEN]
