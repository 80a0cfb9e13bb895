"""A linear layer that learns its width from its first input."""

import torch
import torch.nn as nn

ROWS, FEATURES, WIDTH = 9, 16, 24


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.LazyLinear(width)

    def forward(self, x):
        return self.linear(x)


def get_inputs():
    return [torch.randn(ROWS, FEATURES)]


def get_init_inputs():
    return [WIDTH]
