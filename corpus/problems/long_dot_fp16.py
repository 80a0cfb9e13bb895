"""A @ B in fp16 with a long inner dimension: an accumulator in fp16 rounds every partial sum."""

import torch
import torch.nn as nn

M, N, K = 24, 40, 4096

CASES = [{"name": "prime", "M": 5, "N": 17, "K": 1031}]


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, a, b):
        return torch.matmul(a, b)


def get_inputs():
    return [torch.randn(M, K).to(torch.float16) + 0.5, torch.randn(K, N).to(torch.float16) + 0.5]


def get_init_inputs():
    return []
