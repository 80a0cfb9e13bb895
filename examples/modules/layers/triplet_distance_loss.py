"""Triplet loss with a distance of its own and swapped anchors."""

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
        self.loss = nn.TripletMarginWithDistanceLoss(distance_function=nn.PairwiseDistance(p=1), margin=0.5, swap=True)

    def forward(self, x, y, z):
        return self.loss(x, y, z)


def get_inputs():
    return [torch.randn(ROWS, COLS), torch.randn(ROWS, COLS), torch.randn(ROWS, COLS)]


def get_init_inputs():
    return []
