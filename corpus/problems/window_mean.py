"""Mean of each window of WINDOW elements along a row, fp32."""

import torch
import torch.nn as nn

ROWS, COLS, WINDOW = 20, 400, 8

CASES = [
    {"name": "one window", "ROWS": 1, "COLS": 8},
    {"name": "prime", "ROWS": 5, "COLS": 101},
]


class Model(nn.Module):
    def __init__(self, window):
        super().__init__()
        self.window = window

    def forward(self, x):
        return x.unfold(-1, self.window, 1).mean(dim=-1)


def get_inputs():
    return [torch.randn(ROWS, COLS) + 0.3]


def get_init_inputs():
    return [WINDOW]
