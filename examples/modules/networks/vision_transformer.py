"""Patches, class token, an encoder layer by torch, a head; evaluation mode."""

import torch
import torch.nn as nn

BATCH = 2
SIZE = 16
PATCH = 4
WIDTH = 24
CLASSES = 5

CASES = [
    {"BATCH": 1, "SIZE": 8, "WIDTH": 16, "CLASSES": 3},
]
REALISTIC = {"BATCH": 32, "SIZE": 224, "PATCH": 16, "WIDTH": 512, "CLASSES": 1000}


class Model(nn.Module):
    def __init__(self, size, patch, width, classes):
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, stride=patch)
        self.token = nn.Parameter(torch.randn(1, 1, width))
        self.positions = nn.Parameter(torch.randn(1, (size // patch) ** 2 + 1, width))
        self.layer = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.0, batch_first=True)
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], dim=1) + self.positions
        x = self.layer(x)
        return self.head(x[:, 0])


def get_inputs():
    return [torch.randn(BATCH, 3, SIZE, SIZE)]


def get_init_inputs():
    return [SIZE, PATCH, WIDTH, CLASSES]
