"""ReLU of a linear layer, fp16; and gradients."""

import torch
import torch.nn as nn

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
        self.linear = nn.Linear(inner, outer, dtype=torch.float16)

    def forward(self, x):
        return torch.relu(self.linear(x))


def get_inputs():
    return [torch.randn(ROWS, INNER).half()]


def get_init_inputs():
    return [INNER, OUTER]
