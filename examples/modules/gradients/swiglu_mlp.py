"""down(silu(gate(x)) * up(x)), without biases, and gradients, fp32."""

import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = 60
INNER = 72
OUTER = 96

CASES = [
    {"ROWS": 5, "INNER": 9, "OUTER": 17},
]
REALISTIC = {"ROWS": 4096, "INNER": 4096, "OUTER": 4096}
GRADIENTS = True


class Model(nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.gate = nn.Linear(inner, outer, bias=False)
        self.up = nn.Linear(inner, outer, bias=False)
        self.down = nn.Linear(outer, inner, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


def get_inputs():
    return [torch.randn(ROWS, INNER)]


def get_init_inputs():
    return [INNER, OUTER]
