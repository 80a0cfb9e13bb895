"""A @ B in fp16, 2048 x 2048 x 2048: bound by the tensor cores."""

import torch
import torch.nn as nn

N = 2048
CASES = [{"name": "small", "N": 256}]


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, a, b):
        return torch.matmul(a, b)


def get_inputs():
    return [torch.randn(N, N, dtype=torch.float16), torch.randn(N, N, dtype=torch.float16)]


def get_init_inputs():
    return []
