"""C[i] = A[i] @ B[i]^T for a batch, bf16: the second operand is read transposed.

A candidate that transposes B in memory moves it twice.
"""

import torch
import torch.nn as nn

BATCH, M, N, K = 6, 96, 80, 128

CASES = [
    {"name": "one sample", "BATCH": 1, "M": 1, "N": 1, "K": 1},
    {"name": "prime", "BATCH": 3, "M": 29, "N": 41, "K": 37},
    {"name": "block - 1", "BATCH": 2, "M": 63, "N": 63, "K": 31},
    {"name": "block + 1", "BATCH": 2, "M": 65, "N": 65, "K": 33},
]


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, a, b):
        return torch.bmm(a, b.transpose(1, 2))


def get_inputs():
    return [torch.randn(BATCH, M, K, dtype=torch.bfloat16), torch.randn(BATCH, N, K, dtype=torch.bfloat16)]


def get_init_inputs():
    return []
