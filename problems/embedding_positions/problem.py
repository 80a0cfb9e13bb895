"""scale * table[tokens] + positions[time]: token embedding plus a learned position, fp32.

A gather by int64 indices. Rows are read in any order, so the row offset must be computed in 64 bits.
"""

import torch
import torch.nn as nn

BATCH, TIME, VOCABULARY, WIDTH = 4, 96, 500, 256

CASES = [
    {"name": "one token", "BATCH": 1, "TIME": 1, "VOCABULARY": 1, "WIDTH": 1},
    {"name": "prime", "BATCH": 3, "TIME": 7, "VOCABULARY": 53, "WIDTH": 37},
    {"name": "block - 1", "BATCH": 1, "TIME": 5, "WIDTH": 511},
    {"name": "block + 1", "BATCH": 1, "TIME": 5, "WIDTH": 513},
]


class Model(nn.Module):
    def __init__(self, vocabulary, time, width):
        super().__init__()
        self.table = nn.Embedding(vocabulary, width)
        self.positions = nn.Parameter(torch.randn(time, width) * 0.5)
        self.scale = width**0.5

    def forward(self, tokens):
        return self.table(tokens) * self.scale + self.positions


def get_inputs():
    return [torch.randint(0, VOCABULARY, (BATCH, TIME))]


def get_init_inputs():
    return [VOCABULARY, TIME, WIDTH]
