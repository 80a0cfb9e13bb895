"""y = x / 2 over 8 GiB: neither inputs nor results may go through the host's memory."""

import torch
import torch.nn as nn

ROWS = 32 * 1024
CASES = [{"name": "small", "ROWS": 3}]


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return x * 0.5


def get_inputs():
    return [torch.randn(ROWS, 64 * 1024)]


def get_init_inputs():
    return []
