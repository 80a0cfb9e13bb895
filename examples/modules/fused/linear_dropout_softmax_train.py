"""Linear layer, dropout in training mode, softmax: random, so judged in distribution."""

import torch
import torch.nn as nn

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
        self.dropout = nn.Dropout(0.2)

    def forward(self, x):
        return torch.softmax(self.dropout(self.linear(x)), dim=1)


def get_inputs():
    return [torch.randn(ROWS, FEATURES_IN)]


def get_init_inputs():
    return [FEATURES_IN, FEATURES_OUT]
