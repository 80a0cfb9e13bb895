"""x @ weight.T + bias for few rows and a long inner dimension, fp16: decoding-sized products.

There are only a handful of output tiles; without splitting the inner dimension most of a device idles.
"""

import torch
import torch.nn as nn

TOKENS, FEATURES_IN, FEATURES_OUT = 16, 2048, 96

CASES = [
    {"name": "one element", "TOKENS": 1, "FEATURES_IN": 1, "FEATURES_OUT": 1},
    {"name": "prime", "TOKENS": 7, "FEATURES_IN": 521, "FEATURES_OUT": 37},
    {"name": "block - 1", "TOKENS": 15, "FEATURES_IN": 511, "FEATURES_OUT": 63},
    {"name": "block + 1", "TOKENS": 17, "FEATURES_IN": 513, "FEATURES_OUT": 65},
]


class Model(nn.Module):
    def __init__(self, features_in, features_out):
        super().__init__()
        self.linear = nn.Linear(features_in, features_out, dtype=torch.float16)

    def forward(self, x):
        return self.linear(x)


def get_inputs():
    return [torch.randn(TOKENS, FEATURES_IN, dtype=torch.float16)]


def get_init_inputs():
    return [FEATURES_IN, FEATURES_OUT]
