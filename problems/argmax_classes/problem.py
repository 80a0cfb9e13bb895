"""Argmax over the middle dimension of (batch, classes, pixels), fp32 -> int64: a segmentation map.

The scores are rounded to quarters, so most pixels have ties: the first of the largest must win, as torch
promises. They lie around 1000, where neighbouring quarters are one number in bf16 and in fp16.
"""

import torch
import torch.nn as nn

BATCH, CLASSES, PIXELS = 4, 37, 1000

CASES = [
    {"name": "one class", "BATCH": 1, "CLASSES": 1, "PIXELS": 5},
    {"name": "prime", "BATCH": 3, "CLASSES": 17, "PIXELS": 101},
    {"name": "block - 1", "BATCH": 1, "CLASSES": 31, "PIXELS": 127},
    {"name": "block + 1", "BATCH": 1, "CLASSES": 33, "PIXELS": 129},
]


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, scores):
        return torch.argmax(scores, dim=1)


def get_inputs():
    return [1000.0 + torch.round(torch.randn(BATCH, CLASSES, PIXELS) * 4.0) / 4.0]


def get_init_inputs():
    return []
