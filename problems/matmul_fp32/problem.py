"""C = A @ B in true fp32.

Triton's tl.dot multiplies fp32 operands in tf32 (10 bits of mantissa) unless told otherwise; this problem
tells the two apart.
"""

import torch
import torch.nn as nn

M, K, N = 192, 256, 160

CASES = [
    {"name": "one element", "M": 1, "K": 1, "N": 1},
    {"name": "prime", "M": 37, "K": 53, "N": 71},
    {"name": "block - 1", "M": 63, "K": 31, "N": 63},
    {"name": "block + 1", "M": 65, "K": 33, "N": 65},
]


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, a, b):
        return torch.matmul(a, b)


def get_inputs():
    return [torch.randn(M, K), torch.randn(K, N)]


def get_init_inputs():
    return []
