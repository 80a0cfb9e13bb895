"""x + gate * tanh(x W^T + b) with a small constant gate, fp32: the branch is easily left out."""

import torch
import torch.nn as nn

ROWS, DIM = 40, 64
GATE = 0.003

CASES = [{"name": "prime", "ROWS": 3, "DIM": 17}]


class Model(nn.Module):
    def __init__(self, dim, gate):
        super().__init__()
        self.gate = gate
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        return x + self.gate * torch.tanh(self.proj(x))


def get_inputs():
    return [torch.randn(ROWS, DIM)]


def get_init_inputs():
    return [DIM, GATE]
