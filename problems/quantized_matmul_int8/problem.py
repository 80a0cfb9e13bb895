"""scale * (A @ B^T) for int8 operands and a scale for each column, fp32 out: a quantised linear layer.

The integer sums are exact, and below 2^24 here, so fp32 holds them exactly too.
"""

import torch
import torch.nn as nn

M, N, K = 128, 160, 256

CASES = [
    {"name": "one element", "M": 1, "N": 1, "K": 1},
    {"name": "prime", "M": 37, "N": 53, "K": 67},
    {"name": "block - 1", "M": 31, "N": 63, "K": 63},
    {"name": "block + 1", "M": 33, "N": 65, "K": 65},
]


class Model(nn.Module):
    def __init__(self, features_out):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(features_out) * 0.01 + 0.001)

    def forward(self, a, b):
        return torch.matmul(a.to(self.scale.dtype), b.to(self.scale.dtype).t()) * self.scale


def get_inputs():
    a = torch.randint(-128, 128, (M, K), dtype=torch.int8)
    b = torch.randint(-128, 128, (N, K), dtype=torch.int8)
    return [a, b]


def get_init_inputs():
    return [N]
