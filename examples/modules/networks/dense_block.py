"""A dense block: every layer sees all earlier ones."""

import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 2
WIDTH = 6
GROWTH = 4
SIZE = 8

CASES = [
    {"BATCH": 1, "WIDTH": 3, "GROWTH": 2, "SIZE": 5},
]
REALISTIC = {"BATCH": 16, "WIDTH": 64, "GROWTH": 32, "SIZE": 56}


class Model(nn.Module):
    def __init__(self, width, growth):
        super().__init__()
        self.norms = nn.ModuleList([nn.BatchNorm2d(width + i * growth) for i in range(3)])
        self.convs = nn.ModuleList([nn.Conv2d(width + i * growth, growth, 3, padding=1, bias=False) for i in range(3)])

    def forward(self, x):
        features = [x]
        for norm, conv in zip(self.norms, self.convs, strict=False):
            features.append(conv(F.relu(norm(torch.cat(features, 1)))))
        return torch.cat(features, 1)


def get_inputs():
    return [torch.randn(BATCH, WIDTH, SIZE, SIZE)]


def get_init_inputs():
    return [WIDTH, GROWTH]
