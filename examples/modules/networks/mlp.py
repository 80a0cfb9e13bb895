"""A multilayer perceptron."""

import torch
import torch.nn as nn

BATCH = 10
WIDTH_IN = 30
WIDTH = 50
CLASSES = 7

CASES = [
    {"BATCH": 1, "WIDTH_IN": 5, "WIDTH": 9, "CLASSES": 3},
]
REALISTIC = {"BATCH": 128, "WIDTH_IN": 16384, "WIDTH": 16384, "CLASSES": 8192}


class Model(nn.Module):
    def __init__(self, width_in, width, classes):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(width_in, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, classes)
        )

    def forward(self, x):
        return self.layers(x)


def get_inputs():
    return [torch.randn(BATCH, WIDTH_IN)]


def get_init_inputs():
    return [WIDTH_IN, WIDTH, CLASSES]
