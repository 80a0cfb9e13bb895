"""A linear layer, fp16."""

import torch
import torch.nn as nn

ROWS = 70
FEATURES_IN = 96
FEATURES_OUT = 130

CASES = [
    {"ROWS": 3, "FEATURES_IN": 5, "FEATURES_OUT": 7},
]
REALISTIC = {"ROWS": 8192, "FEATURES_IN": 4096, "FEATURES_OUT": 4096}


class Model(nn.Module):
    def __init__(self, features_in, features_out):
        super().__init__()
        self.linear = nn.Linear(features_in, features_out, dtype=torch.float16)

    def forward(self, x):
        return self.linear(x)


def get_inputs():
    return [torch.randn(ROWS, FEATURES_IN, dtype=torch.float16)]


def get_init_inputs():
    return [FEATURES_IN, FEATURES_OUT]
