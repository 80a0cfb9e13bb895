"""An activation chosen by name at construction: ELU, Mish or hard-swish, fp32.

One module, several computations: each case takes another branch of the host code.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

SIZE = 150000
ACTIVATION = "mish"

CASES = [
    {"name": "elu, prime", "SIZE": 997, "ACTIVATION": "elu"},
    {"name": "mish, one element", "SIZE": 1, "ACTIVATION": "mish"},
    {"name": "hardswish, block + 1", "SIZE": 1025, "ACTIVATION": "hardswish"},
]


class Model(nn.Module):
    def __init__(self, activation):
        super().__init__()
        self.activation = {"elu": F.elu, "mish": F.mish, "hardswish": F.hardswish}[activation]

    def forward(self, x):
        return self.activation(x)


def get_inputs():
    return [torch.randn(SIZE) * 3.0]


def get_init_inputs():
    return [ACTIVATION]
