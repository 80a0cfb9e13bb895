"""Gaussian and Poisson negative log-likelihoods."""

import torch
import torch.nn as nn

ROWS = 6
COLS = 37

CASES = [
    {"ROWS": 1, "COLS": 8},
    {"ROWS": 3, "COLS": 130},
]
REALISTIC = {"ROWS": 4096, "COLS": 8192}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.gauss, self.poisson = nn.GaussianNLLLoss(), nn.PoissonNLLLoss()

    def forward(self, x, y, var):
        return self.gauss(x, y, var) + self.poisson(x, y)


def get_inputs():
    return [torch.randn(ROWS, COLS), torch.rand(ROWS, COLS) * 3, torch.rand(ROWS, COLS) + 0.1]


def get_init_inputs():
    return []
