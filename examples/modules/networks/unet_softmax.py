"""A U-Net step whose blocks end in batch normalisation and a softmax over the last dimension."""

import torch
import torch.nn as nn

BATCH = 2
WIDTH = 4
SIZE = 8

CASES = [
    {"BATCH": 1, "WIDTH": 2, "SIZE": 12},
]
REALISTIC = {"BATCH": 8, "WIDTH": 64, "SIZE": 256}


def double(inputs, outputs):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1),
        nn.BatchNorm2d(outputs),
        nn.Softmax(dim=-1),
        nn.Conv2d(outputs, outputs, 3, padding=1),
        nn.BatchNorm2d(outputs),
        nn.Softmax(dim=-1),
    )


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first, self.pool, self.middle = double(3, width), nn.MaxPool2d(2, 2), double(width, 2 * width)
        self.up, self.last = nn.ConvTranspose2d(2 * width, width, kernel_size=2, stride=2), double(2 * width, width)
        self.out = nn.Conv2d(width, 2, 1)

    def forward(self, x):
        a = self.first(x)
        b = self.middle(self.pool(a))
        return self.out(self.last(torch.cat([self.up(b), a], dim=1)))


def get_inputs():
    return [torch.randn(BATCH, 3, SIZE, SIZE + 4)]


def get_init_inputs():
    return [WIDTH]
