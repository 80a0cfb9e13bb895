"""Two linear layers, one gates the other, bf16."""

import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = 60
FEATURES_IN = 70
FEATURES_OUT = 96

CASES = [
    {"ROWS": 5, "FEATURES_IN": 9, "FEATURES_OUT": 16},
]
REALISTIC = {"ROWS": 4096, "FEATURES_IN": 4096, "FEATURES_OUT": 8192}


class Model(nn.Module):
    def __init__(self, features_in, features_out):
        super().__init__()
        self.value = nn.Linear(features_in, features_out, dtype=torch.bfloat16)
        self.gate = nn.Linear(features_in, features_out, dtype=torch.bfloat16)

    def forward(self, x):
        return self.value(x) * F.silu(self.gate(x))


def get_inputs():
    return [torch.randn(ROWS, FEATURES_IN, dtype=torch.bfloat16)]


def get_init_inputs():
    return [FEATURES_IN, FEATURES_OUT]
