"""Softmax over the last dimension and its gradient, fp32.

The gradient is y * (g - sum(g * y)): a candidate that leaves out the sum, or sums over the wrong dimension, is wrong.
The spread of the logits is drawn anew each time, and small: where one element takes all, the gradient is a difference
of equal numbers.
"""

import torch
import torch.nn as nn

ROWS, COLS = 200, 700

CASES = [
    {"name": "two columns", "ROWS": 1, "COLS": 2},
    {"name": "prime", "ROWS": 13, "COLS": 101},
    {"name": "block + 1", "ROWS": 3, "COLS": 1025},
]

GRADIENTS = True


class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)


def get_inputs():
    return [torch.randn(ROWS, COLS) * (0.5 + torch.rand(()))]


def get_init_inputs():
    return []
