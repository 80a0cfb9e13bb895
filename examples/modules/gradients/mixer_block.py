"""A block that mixes along the sequence and then along the features, and gradients, fp32."""

import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 2
LENGTH = 20
WIDTH = 32

CASES = [
    {"BATCH": 1, "LENGTH": 7, "WIDTH": 16},
    {"BATCH": 3, "LENGTH": 11, "WIDTH": 24},
]
REALISTIC = {"BATCH": 4, "LENGTH": 1024, "WIDTH": 512}
GRADIENTS = True


class Model(nn.Module):
    def __init__(self, length, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.tokens = nn.Linear(length, length)
        self.features = nn.Linear(width, width)

    def forward(self, x):
        x = x + F.gelu(self.tokens(self.norm(x).transpose(1, 2))).transpose(1, 2)
        return x + F.gelu(self.features(x))


def get_inputs():
    return [torch.randn(BATCH, LENGTH, WIDTH)]


def get_init_inputs():
    return [LENGTH, WIDTH]
