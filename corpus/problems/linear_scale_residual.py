"""x + scale * (x W^T + b) in fp32; the branch is small against the residual."""

import torch
import torch.nn as nn

ROWS, DIM = 29, 72
GAMMA = 1e-3


class Model(nn.Module):
    def __init__(self, dim, gamma):
        super().__init__()
        self.gamma = gamma
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        return x + self.gamma * self.proj(x)


def get_inputs():
    return [torch.randn(ROWS, DIM)]


def get_init_inputs():
    return [DIM, GAMMA]
