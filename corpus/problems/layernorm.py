"""LayerNorm over the last axis, fp32, low-variance rows (so that eps matters)."""

import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS, DIM = 20, 300
EPS = 1e-5


class Model(nn.Module):
    def __init__(self, dim, eps):
        super().__init__()
        self.dim, self.eps = dim, eps
        self.weight = nn.Parameter(torch.rand(dim) + 0.5)
        self.bias = nn.Parameter(torch.randn(dim) * 0.1)

    def forward(self, x):
        return F.layer_norm(x, (self.dim,), self.weight, self.bias, self.eps)


def get_inputs():
    return [torch.randn(ROWS, DIM) * 0.01 + 0.05]


def get_init_inputs():
    return [DIM, EPS]
