"""Layer normalisation of a sum of two, and gradients, fp32."""

import torch
import torch.nn as nn

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
        self.norm = nn.LayerNorm(cols)

    def forward(self, x, y):
        return self.norm(x + y)


def get_inputs():
    return [torch.randn(ROWS, COLS), torch.randn(ROWS, COLS)]


def get_init_inputs():
    return [COLS]
