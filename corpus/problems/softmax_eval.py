"""Row softmax, fp32, in evaluation mode: host code may ask for the mode."""

import torch
import torch.nn as nn

TRAINING = False
ROWS, COLS = 64, 1000

CASES = [{"name": "prime", "ROWS": 11, "COLS": 257}]


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return torch.softmax(x, dim=-1)


def get_inputs():
    return [torch.randn(ROWS, COLS) * 20.0]


def get_init_inputs():
    return []
