"""nn.TransformerEncoder of two layers on tokens with a class token and a convolutional patch embedding."""

import torch
import torch.nn as nn

BATCH = 2
SIZE = 8
WIDTH = 8

CASES = [
    {"BATCH": 1, "SIZE": 12, "WIDTH": 4},
]
REALISTIC = {"BATCH": 10, "SIZE": 32, "WIDTH": 128}


TRAINING = False


class Model(nn.Module):
    def __init__(self, width, patch=4, heads=2):
        super().__init__()
        self.patches = nn.Conv2d(3, width, kernel_size=patch, stride=patch)
        layer = nn.TransformerEncoderLayer(width, heads, dim_feedforward=2 * width, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, num_layers=2, enable_nested_tensor=False)
        self.token = nn.Parameter(torch.randn(1, 1, width))
        self.head = nn.Linear(width, 3)

    def forward(self, x):
        b = x.shape[0]
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(b, -1, -1), x], dim=1)
        return self.head(self.layers(x)[:, 0])


def get_inputs():
    return [torch.randn(BATCH, 3, SIZE, SIZE)]


def get_init_inputs():
    return [WIDTH]
