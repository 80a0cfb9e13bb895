"""Rows of a table, looked up, and gradients, fp32."""

import torch
import torch.nn as nn

WORDS = 50
WIDTH = 24
LENGTH = 70

CASES = [
    {"WORDS": 11, "WIDTH": 9, "LENGTH": 13},
]
REALISTIC = {"WORDS": 32000, "WIDTH": 1024, "LENGTH": 8192}
GRADIENTS = ("table.weight",)


class Model(nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.table = nn.Embedding(words, width)

    def forward(self, index):
        return self.table(index)


def get_inputs():
    return [torch.randint(0, WORDS, (LENGTH,))]


def get_init_inputs():
    return [WORDS, WIDTH]
