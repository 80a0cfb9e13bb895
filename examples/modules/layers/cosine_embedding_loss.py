"""Cosine embedding loss with a margin."""

import torch
import torch.nn as nn

ROWS = 6
COLS = 37

CASES = [
    {"ROWS": 1, "COLS": 8},
    {"ROWS": 3, "COLS": 130},
]
REALISTIC = {"ROWS": 4096, "COLS": 8192}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.loss = nn.CosineEmbeddingLoss(margin=0.2)

    def forward(self, x, y, sign):
        return self.loss(x, y, sign)


def get_inputs():
    return [torch.randn(ROWS, COLS), torch.randn(ROWS, COLS), torch.randint(0, 2, (ROWS,)) * 2 - 1]


def get_init_inputs():
    return []
