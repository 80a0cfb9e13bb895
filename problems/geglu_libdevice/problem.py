"""gelu(a) * b for the two halves of the last dimension, exact (erf) GELU, fp32: a gated feed-forward unit."""

import torch
import torch.nn as nn
import torch.nn.functional as F

TOKENS, WIDTH = 256, 600

CASES = [
    {"name": "one element", "TOKENS": 1, "WIDTH": 1},
    {"name": "prime", "TOKENS": 13, "WIDTH": 101},
    {"name": "block - 1", "TOKENS": 3, "WIDTH": 511},
    {"name": "block + 1", "TOKENS": 3, "WIDTH": 513},
]


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        gate, value = x.chunk(2, dim=-1)
        return F.gelu(gate) * value


def get_inputs():
    return [torch.randn(TOKENS, 2 * WIDTH) * 1.5]


def get_init_inputs():
    return []
