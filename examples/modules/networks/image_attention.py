"""Multi-head attention over the pixels of an image, by nn.MultiheadAttention, with a residual norm."""

import torch
import torch.nn as nn

BATCH = 2
WIDTH = 8
HEIGHT = 4
LENGTH = 5

CASES = [
    {"BATCH": 1, "WIDTH": 4, "HEIGHT": 3, "LENGTH": 3},
]
REALISTIC = {"BATCH": 2, "WIDTH": 128, "HEIGHT": 128, "LENGTH": 128}


class Model(nn.Module):
    def __init__(self, width, heads=4):
        super().__init__()
        self.attention = nn.MultiheadAttention(width, heads)
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        b, c, h, w = x.shape
        x = x.view(b, c, h * w).permute(2, 0, 1)
        out, _ = self.attention(x, x, x)
        x = self.norm(out + x)
        return x.permute(1, 2, 0).view(b, c, h, w)


def get_inputs():
    return [torch.randn(BATCH, WIDTH, HEIGHT, LENGTH)]


def get_init_inputs():
    return [WIDTH]
