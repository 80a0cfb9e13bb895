"""Mean of the embeddings of a bag of words."""

import torch
import torch.nn as nn

BATCH = 6
WORDS = 9
VOCABULARY = 50
WIDTH = 40

CASES = [
    {"BATCH": 1, "WORDS": 3, "WIDTH": 5},
]
REALISTIC = {"BATCH": 4096, "WORDS": 64, "VOCABULARY": 50000, "WIDTH": 512}


class Model(nn.Module):
    def __init__(self, vocabulary, width):
        super().__init__()
        self.table = nn.Embedding(vocabulary, width)

    def forward(self, words):
        return self.table(words).mean(dim=1)


def get_inputs():
    return [torch.randint(0, VOCABULARY, (BATCH, WORDS))]


def get_init_inputs():
    return [VOCABULARY, WIDTH]
