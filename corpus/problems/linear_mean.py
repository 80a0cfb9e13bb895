"""Mean over the features of a linear layer, fp32.

The mean of a linear map is a linear map: x . mean(weight) + mean(bias). A candidate that computes that needs
a hundredth of the work, and is right.
"""

import torch
import torch.nn as nn

TOKENS, FEATURES_IN, FEATURES_OUT = 64, 160, 96

CASES = [
    {"name": "one element", "TOKENS": 1, "FEATURES_IN": 1, "FEATURES_OUT": 1},
    {"name": "prime", "TOKENS": 11, "FEATURES_IN": 37, "FEATURES_OUT": 53},
]


class Model(nn.Module):
    def __init__(self, features_in, features_out):
        super().__init__()
        self.linear = nn.Linear(features_in, features_out)

    def forward(self, x):
        return self.linear(x).mean(dim=-1)


def get_inputs():
    return [torch.randn(TOKENS, FEATURES_IN) + 0.5]


def get_init_inputs():
    return [FEATURES_IN, FEATURES_OUT]
