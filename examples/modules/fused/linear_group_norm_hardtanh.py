"""Linear layer, group norm, hard tanh."""

import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = 60
FEATURES_IN = 70
FEATURES_OUT = 96

CASES = [
    {"ROWS": 5, "FEATURES_IN": 9, "FEATURES_OUT": 16},
]
REALISTIC = {"ROWS": 1024, "FEATURES_IN": 4096, "FEATURES_OUT": 4096}


class Model(nn.Module):
    def __init__(self, features_in, features_out):
        super().__init__()
        self.linear = nn.Linear(features_in, features_out)
        self.norm = nn.GroupNorm(4, features_out)

    def forward(self, x):
        return F.hardtanh(self.norm(self.linear(x)), -2.0, 2.0)


def get_inputs():
    return [torch.randn(ROWS, FEATURES_IN)]


def get_init_inputs():
    return [FEATURES_IN, FEATURES_OUT]
