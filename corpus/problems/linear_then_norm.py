"""A linear layer and a layer normalisation with random affine parameters, fp32.

Weights belong to names: a candidate may create its parameters in another order than the reference.
"""

import torch
import torch.nn as nn

TOKENS, FEATURES_IN, FEATURES_OUT = 48, 80, 112

CASES = [
    {"name": "small", "TOKENS": 1, "FEATURES_IN": 3, "FEATURES_OUT": 2},
    {"name": "prime", "TOKENS": 7, "FEATURES_IN": 29, "FEATURES_OUT": 61},
]


class Model(nn.Module):
    def __init__(self, features_in, features_out):
        super().__init__()
        self.linear = nn.Linear(features_in, features_out)
        self.norm = nn.LayerNorm(features_out)
        nn.init.uniform_(self.norm.weight, 0.5, 1.5)
        nn.init.normal_(self.norm.bias)

    def forward(self, x):
        return self.norm(self.linear(x))


def get_inputs():
    return [torch.randn(TOKENS, FEATURES_IN)]


def get_init_inputs():
    return [FEATURES_IN, FEATURES_OUT]
