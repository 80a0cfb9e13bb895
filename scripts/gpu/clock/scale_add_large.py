"""y = 1.5 x + b over 256 MiB each: so much that work done twice does not find its inputs in the cache."""

import torch
import torch.nn as nn

N = 64 * 1024 * 1024
CASES = [{"name": "small", "N": 10_000}]


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, b):
        return x * 1.5 + b


def get_inputs():
    return [torch.randn(N), torch.randn(N)]


def get_init_inputs():
    return []
