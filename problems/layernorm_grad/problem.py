"""Layer normalisation over the last dimension with weight and bias, and its gradients, fp32.

The gradient of x has two means in it, those of weight and bias are sums over all tokens: a candidate that leaves one
out, or takes the normalised values for the inputs, is wrong.
"""

import torch
import torch.nn as nn

TOKENS, WIDTH = 200, 384

CASES = [
    {"name": "three columns", "TOKENS": 2, "WIDTH": 3},
    {"name": "prime", "TOKENS": 17, "WIDTH": 131},
    {"name": "block + 1", "TOKENS": 3, "WIDTH": 257},
]

GRADIENTS = True


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
