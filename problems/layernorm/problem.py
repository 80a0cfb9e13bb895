"""Layer normalisation over the last dimension with weight and bias, fp32.

A row reduction followed by an affine map. The inputs are shifted, so a candidate that skips the mean or
swaps weight and bias is wrong.
"""

import torch
import torch.nn as nn

TOKENS, WIDTH = 256, 768

CASES = [
    {"name": "two columns", "TOKENS": 1, "WIDTH": 2},
    {"name": "prime", "TOKENS": 17, "WIDTH": 131},
    {"name": "block - 1", "TOKENS": 3, "WIDTH": 255},
    {"name": "block + 1", "TOKENS": 3, "WIDTH": 257},
]


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        return self.norm(x)


def get_inputs():
    return [torch.randn(TOKENS, WIDTH) * 2.0 + 1.0]


def get_init_inputs():
    return [WIDTH]
