"""Chained element-wise add and ReLU, fp32, 1-D, length not a multiple of any block.
The inputs are all non-negative."""

import torch
import torch.nn as nn

N = 5003
SCALE = 0.5


class Model(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, x, y):
        return torch.relu(torch.relu(x + y) * self.scale + y)


def get_inputs():
    return [torch.rand(N), torch.rand(N)]


def get_init_inputs():
    return [SCALE]
