"""fp16 matrix product; the second operand arrives as a transposed (non-contiguous) view."""

import torch
import torch.nn as nn

M, K, N = 45, 77, 53


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, a, b):
        return torch.matmul(a, b)


def get_inputs():
    a = torch.randn(M, K).to(torch.float16)
    b = torch.randn(N, K).to(torch.float16).t()
    return [a, b]


def get_init_inputs():
    return []
