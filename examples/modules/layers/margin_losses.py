"""Ranking, multi-class margin and soft margin losses."""

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
        self.ranking, self.classes, self.soft = nn.MarginRankingLoss(0.1), nn.MultiMarginLoss(), nn.SoftMarginLoss()

    def forward(self, x, y, sign, target):
        return self.ranking(x, y, sign) + self.classes(x, target) + self.soft(y, sign)


def get_inputs():
    return [
        torch.randn(ROWS, COLS),
        torch.randn(ROWS, COLS),
        torch.randint(0, 2, (ROWS, COLS)).float() * 2 - 1,
        torch.randint(0, COLS, (ROWS,)),
    ]


def get_init_inputs():
    return []
