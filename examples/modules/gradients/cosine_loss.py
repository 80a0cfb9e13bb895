"""One less the cosine of pairs of rows, averaged, and gradients, fp32."""

import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = 60
COLS = 200

CASES = [
    {"ROWS": 5, "COLS": 37},
]
REALISTIC = {"ROWS": 4096, "COLS": 4096}
GRADIENTS = True


class Model(nn.Module):
    def forward(self, x, y):
        return (1.0 - F.cosine_similarity(x, y, dim=-1)).mean()


def get_inputs():
    return [torch.randn(ROWS, COLS), torch.randn(ROWS, COLS)]


def get_init_inputs():
    return []
