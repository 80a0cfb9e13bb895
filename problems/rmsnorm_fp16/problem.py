"""RMS normalisation over the last dimension with a weight, fp16.

The sum of squares passes fp16's largest number (65,504) long before the row ends, so it must be
accumulated in fp32.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

TOKENS, WIDTH = 256, 1024
EPS = 1e-6

CASES = [
    {"name": "two columns", "TOKENS": 1, "WIDTH": 2},
    {"name": "prime", "TOKENS": 13, "WIDTH": 199},
    {"name": "block - 1", "TOKENS": 5, "WIDTH": 511},
    {"name": "block + 1", "TOKENS": 5, "WIDTH": 513},
]


class Model(nn.Module):
    def __init__(self, width, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(width, dtype=torch.float16) + 0.5)
        self.eps = eps

    def forward(self, x):
        return F.rms_norm(x, self.weight.shape, self.weight, self.eps)


def get_inputs():
    return [torch.randn(TOKENS, WIDTH, dtype=torch.float16) * 8.0]


def get_init_inputs():
    return [WIDTH, EPS]
