"""clamp(swish(x + bias), LOW, HIGH), fp32: an elementwise chain with a broadcast parameter.

The plainest kind of fusion: three memory-bound operations become one pass. The bounds lie inside the
range of the activation, so that a candidate which forgets the clamp is wrong.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS, COLS = 256, 1000
LOW, HIGH = -0.2, 1.5

CASES = [
    {"name": "one element", "ROWS": 1, "COLS": 1},
    {"name": "prime", "ROWS": 7, "COLS": 131},
    {"name": "block - 1", "ROWS": 15, "COLS": 127},
    {"name": "block + 1", "ROWS": 17, "COLS": 129},
]


class Model(nn.Module):
    def __init__(self, features, low, high):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(features) * 0.5)
        self.low = low
        self.high = high

    def forward(self, x):
        return torch.clamp(F.silu(x + self.bias), self.low, self.high)


def get_inputs():
    return [torch.randn(ROWS, COLS)]


def get_init_inputs():
    return [COLS, LOW, HIGH]
