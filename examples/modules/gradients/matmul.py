"""A product of two matrices, with both gradients, and gradients, fp32."""

import torch
import torch.nn as nn

ROWS = 60
INNER = 72
OUTER = 96

CASES = [
    {"ROWS": 5, "INNER": 9, "OUTER": 17},
]
REALISTIC = {"ROWS": 4096, "INNER": 4096, "OUTER": 4096}
GRADIENTS = True


class Model(nn.Module):
    def forward(self, a, b):
        return a @ b


def get_inputs():
    return [torch.randn(ROWS, INNER), torch.randn(INNER, OUTER)]


def get_init_inputs():
    return []
