"""relu(x) with dropout, fp32: the output is random, so it can only be judged in distribution.

Each element is zero with probability RATE and otherwise scaled by 1 / (1 - RATE); another call must draw
another mask.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

TRAINING = True
ROWS, COLS = 200, 500
RATE = 0.3

CASES = [
    {"name": "prime", "ROWS": 101, "COLS": 103},
    {"name": "rate 0.8", "ROWS": 64, "COLS": 129, "RATE": 0.8},
]


class Model(nn.Module):
    def __init__(self, rate):
        super().__init__()
        self.rate = rate

    def forward(self, x):
        return F.dropout(F.relu(x), self.rate, self.training)


def get_inputs():
    return [torch.randn(ROWS, COLS)]


def get_init_inputs():
    return [RATE]
