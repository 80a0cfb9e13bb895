"""Causal self-attention that weighs with ReLU in the place of softmax."""

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
REALISTIC = {"BATCH": 16, "TIME": 1024, "WIDTH": 768}


class Model(nn.Module):
    def __init__(self, width, heads=2, longest=1024):
        super().__init__()
        self.heads, self.width = heads, width
        self.joint = nn.Linear(width, 3 * width)
        self.register_buffer("bias", torch.tril(torch.ones(longest, longest)).view(1, 1, longest, longest))

    def forward(self, x):
        b, t, c = x.size()
        q, k, v = self.joint(x).split(self.width, dim=2)
        k = k.view(b, t, self.heads, c // self.heads).transpose(1, 2)
        q = q.view(b, t, self.heads, c // self.heads).transpose(1, 2)
        v = v.view(b, t, self.heads, c // self.heads).transpose(1, 2)
        scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        scores = scores.masked_fill(self.bias[:, :, :t, :t] == 0, float("-inf"))
        return (F.relu(scores) @ v).transpose(1, 2).contiguous().view(b, t, c)


def get_inputs():
    return [torch.randn(BATCH, TIME, WIDTH)]


def get_init_inputs():
    return [WIDTH]
