"""An MLP-mixer block: mixing over tokens, then over channels."""

import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 2
TOKENS = 12
WIDTH = 20

CASES = [
    {"BATCH": 1, "TOKENS": 5, "WIDTH": 8},
]
REALISTIC = {"BATCH": 32, "TOKENS": 196, "WIDTH": 512}


class Model(nn.Module):
    def __init__(self, tokens, width):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.token1 = nn.Linear(tokens, 2 * tokens)
        self.token2 = nn.Linear(2 * tokens, tokens)
        self.norm2 = nn.LayerNorm(width)
        self.channel1 = nn.Linear(width, 4 * width)
        self.channel2 = nn.Linear(4 * width, width)

    def forward(self, x):
        y = self.norm1(x).transpose(1, 2)
        x = x + self.token2(F.gelu(self.token1(y))).transpose(1, 2)
        return x + self.channel2(F.gelu(self.channel1(self.norm2(x))))


def get_inputs():
    return [torch.randn(BATCH, TOKENS, WIDTH)]


def get_init_inputs():
    return [TOKENS, WIDTH]
