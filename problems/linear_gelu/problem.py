"""gelu(x @ weight.T + bias) with the exact (erf) GELU, fp32: a matrix product with a fused epilogue."""

import torch
import torch.nn as nn
import torch.nn.functional as F

TOKENS, FEATURES_IN, FEATURES_OUT = 160, 192, 224

CASES = [
    {"name": "one element", "TOKENS": 1, "FEATURES_IN": 1, "FEATURES_OUT": 1},
    {"name": "prime", "TOKENS": 43, "FEATURES_IN": 59, "FEATURES_OUT": 67},
    {"name": "block - 1", "TOKENS": 31, "FEATURES_IN": 31, "FEATURES_OUT": 63},
    {"name": "block + 1", "TOKENS": 33, "FEATURES_IN": 33, "FEATURES_OUT": 65},
]


class Model(nn.Module):
    def __init__(self, features_in, features_out):
        super().__init__()
        self.linear = nn.Linear(features_in, features_out)

    def forward(self, x):
        return F.gelu(self.linear(x))


def get_inputs():
    return [torch.randn(TOKENS, FEATURES_IN) * 1.5]


def get_init_inputs():
    return [FEATURES_IN, FEATURES_OUT]
