"""Embedding gather times sqrt(dim), fp32 table, int64 indices."""

import math

import torch
import torch.nn as nn

VOCAB, DIM = 50, 24
B, T = 5, 7


class Model(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.factor = math.sqrt(dim)
        self.table = nn.Embedding(vocab, dim)

    def forward(self, ids):
        return self.table(ids) * self.factor


def get_inputs():
    return [torch.randint(0, VOCAB, (B, T))]


def get_init_inputs():
    return [VOCAB, DIM]
