"""relu(A @ B^T), bf16: more output tiles than a device runs at once."""

import torch
import torch.nn as nn

M, N, K = 512, 480, 64

CASES = [
    {"name": "one element", "M": 1, "N": 1, "K": 1},
    {"name": "prime", "M": 53, "N": 97, "K": 43},
    {"name": "block - 1", "M": 31, "N": 31, "K": 31},
    {"name": "block + 1", "M": 33, "N": 33, "K": 33},
]


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, a, b):
        return torch.relu(torch.matmul(a, b.t()))


def get_inputs():
    return [torch.randn(M, K, dtype=torch.bfloat16), torch.randn(N, K, dtype=torch.bfloat16)]


def get_init_inputs():
    return []
