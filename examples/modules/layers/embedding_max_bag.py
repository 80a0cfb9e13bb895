"""Bags of embeddings with their maximum, and one-hot codes."""

import torch
import torch.nn as nn

BATCH = 4
BAG = 5
WORDS = 30
WIDTH = 8

CASES = [
    {"BATCH": 1, "BAG": 2, "WORDS": 7, "WIDTH": 3},
]
REALISTIC = {"BATCH": 4096, "BAG": 64, "WORDS": 50000, "WIDTH": 256}


class Model(nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.bag = nn.EmbeddingBag(words, width, mode="max")

    def forward(self, x):
        return self.bag(x)


def get_inputs():
    return [torch.randint(0, WORDS, (BATCH, BAG))]


def get_init_inputs():
    return [WORDS, WIDTH]
