"""A pre-norm transformer block with causal attention."""

import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 2
TIME = 20
WIDTH = 32
HEADS = 4

CASES = [
    {"BATCH": 1, "TIME": 5, "WIDTH": 16, "HEADS": 4},
]
REALISTIC = {"BATCH": 16, "TIME": 512, "WIDTH": 768, "HEADS": 12}


class Attention(nn.Module):
    """Causal self-attention of several heads."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        batch, time, width = x.shape
        q, k, v = self.qkv(x).split(width, dim=2)
        q, k, v = (t.view(batch, time, self.heads, width // self.heads).transpose(1, 2) for t in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(batch, time, width))


class Model(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


def get_inputs():
    return [torch.randn(BATCH, TIME, WIDTH)]


def get_init_inputs():
    return [WIDTH, HEADS]
