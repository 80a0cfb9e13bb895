"""gelu(x @ W^T + b), exact, and the gradients of x, W and b, fp32: three products.

A candidate whose gelu has the derivative of the tanh approximation, or that leaves the bias out of it, is wrong.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS, INNER, OUTER = 96, 128, 112

CASES = [
    {"name": "ones", "ROWS": 1, "INNER": 1, "OUTER": 1},
    {"name": "prime", "ROWS": 17, "INNER": 31, "OUTER": 37},
    {"name": "block + 1", "ROWS": 33, "INNER": 65, "OUTER": 33},
]

GRADIENTS = True


class Model(nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.linear = nn.Linear(inner, outer)

    def forward(self, x):
        return F.gelu(self.linear(x))


def get_inputs():
    return [torch.randn(ROWS, INNER) * 2.0 + 0.3]


def get_init_inputs():
    return [INNER, OUTER]
