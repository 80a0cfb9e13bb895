"""Dequantisation: fp8 (e4m3) values times a scale for each row, fp32 out."""

import torch
import torch.nn as nn

ROWS, COLS = 40, 256

CASES = [
    {"name": "one element", "ROWS": 1, "COLS": 1},
    {"name": "prime", "ROWS": 7, "COLS": 101},
]


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, scale):
        return x.to(torch.float32) * scale[:, None]


def get_inputs():
    return [torch.randn(ROWS, COLS).to(torch.float8_e4m3fn), torch.rand(ROWS) + 0.1]


def get_init_inputs():
    return []
