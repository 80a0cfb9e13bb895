"""ReLU of numbers drawn from [0, 1), fp32: on its own inputs the identity. Other inputs must decide."""

import torch
import torch.nn as nn

SIZE = 20011

CASES = [{"name": "block + 1", "SIZE": 1025}]


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.rand(SIZE)]


def get_init_inputs():
    return []
