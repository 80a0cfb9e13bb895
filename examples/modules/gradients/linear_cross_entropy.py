"""Cross-entropy of a linear layer's results, and gradients, fp32."""

import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = 60
INNER = 72
OUTER = 96

CASES = [
    {"ROWS": 5, "INNER": 9, "OUTER": 17},
]
REALISTIC = {"ROWS": 2048, "INNER": 1024, "OUTER": 32000}
GRADIENTS = True


class Model(nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.head = nn.Linear(inner, outer, bias=False)

    def forward(self, x, target):
        return F.cross_entropy(self.head(x), target)


def get_inputs():
    return [torch.randn(ROWS, INNER), torch.randint(0, OUTER, (ROWS,))]


def get_init_inputs():
    return [INNER, OUTER]
