"""How often each byte occurs."""

import torch
import torch.nn as nn

LENGTH = 300
CLASSES = 256

CASES = [
    {"LENGTH": 1, "CLASSES": 300},
]
REALISTIC = {"LENGTH": 10000000, "CLASSES": 256}


class Model(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.classes = classes

    def forward(self, x):
        return torch.bincount(x, minlength=self.classes)


def get_inputs():
    return [torch.randint(0, 256, (LENGTH,)).to(torch.uint8)]


def get_init_inputs():
    return [CLASSES]
