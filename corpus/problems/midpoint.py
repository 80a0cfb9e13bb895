"""The mean of a tensor and its own copy, transposed: equal to its input, but a computation."""

import torch
import torch.nn as nn

ROWS, COLS = 33, 70


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return ((x + x) * 0.5).t().contiguous()


def get_inputs():
    return [torch.randn(ROWS, COLS)]


def get_init_inputs():
    return []
