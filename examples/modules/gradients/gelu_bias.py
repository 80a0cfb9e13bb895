"""GELU of a biased matrix, and gradients, fp32."""

import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = 60
COLS = 200

CASES = [
    {"ROWS": 5, "COLS": 37},
]
REALISTIC = {"ROWS": 4096, "COLS": 4096}
GRADIENTS = True


class Model(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(cols))

    def forward(self, x):
        return F.gelu(x + self.bias)


def get_inputs():
    return [torch.randn(ROWS, COLS)]


def get_init_inputs():
    return [COLS]
