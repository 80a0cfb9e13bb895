"""Triplet margin loss."""

import torch
import torch.nn as nn

ROWS = 40
COLS = 70

CASES = [
    {"ROWS": 3, "COLS": 5},
]
REALISTIC = {"ROWS": 8192, "COLS": 8192}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.loss = nn.TripletMarginLoss(margin=1.3)

    def forward(self, anchor, positive, negative):
        return self.loss(anchor, positive, negative)


def get_inputs():
    return [torch.randn(ROWS, COLS), torch.randn(ROWS, COLS), torch.randn(ROWS, COLS)]


def get_init_inputs():
    return []
