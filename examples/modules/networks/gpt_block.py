"""A causal transformer block with a mask buffer and the tanh form of GELU, as in small GPTs."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 2
TIME = 10
WIDTH = 8

CASES = [
    {"BATCH": 1, "TIME": 7, "WIDTH": 4},
]
REALISTIC = {"BATCH": 64, "TIME": 1024, "WIDTH": 768}


class NewGELU(nn.Module):
    def forward(self, x):
        return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))


class CausalAttention(nn.Module):
    def __init__(self, width, heads, longest):
        super().__init__()
        self.heads, self.width = heads, width
        self.joint, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.drop = nn.Dropout(0.0)
        self.register_buffer("bias", torch.tril(torch.ones(longest, longest)).view(1, 1, longest, longest))

    def forward(self, x):
        b, t, c = x.size()
        q, k, v = self.joint(x).split(self.width, dim=2)
        q, k, v = (y.view(b, t, self.heads, c // self.heads).transpose(1, 2) for y in (q, k, v))
        scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        scores = scores.masked_fill(self.bias[:, :, :t, :t] == 0, float("-inf"))
        weights = self.drop(F.softmax(scores, dim=-1))
        y = (weights @ v).transpose(1, 2).contiguous().view(b, t, c)
        return self.out(y)


class Model(nn.Module):
    def __init__(self, width, longest):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = CausalAttention(width, 2, longest)
        self.mlp = nn.ModuleDict({"up": nn.Linear(width, 4 * width), "act": NewGELU()})
        self.mlp.update({"down": nn.Linear(4 * width, width), "drop": nn.Dropout(0.0)})

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        m = self.mlp
        return x + m.drop(m.down(m.act(m.up(self.norm2(x)))))


def get_inputs():
    return [torch.randn(BATCH, TIME, WIDTH)]


def get_init_inputs():
    return [WIDTH, 16 + 1008 * (TIME > 100)]
