"""A U-Net of two levels with skip connections."""

import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 1
WIDTH = 4
SIZE = 12

CASES = [
    {"BATCH": 2, "WIDTH": 2, "SIZE": 8},
]
REALISTIC = {"BATCH": 8, "WIDTH": 32, "SIZE": 128}


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.down1 = nn.Conv2d(3, width, 3, padding=1)
        self.down2 = nn.Conv2d(width, 2 * width, 3, padding=1)
        self.middle = nn.Conv2d(2 * width, 4 * width, 3, padding=1)
        self.up2 = nn.ConvTranspose2d(4 * width, 2 * width, 2, stride=2)
        self.merge2 = nn.Conv2d(4 * width, 2 * width, 3, padding=1)
        self.up1 = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.merge1 = nn.Conv2d(2 * width, width, 3, padding=1)
        self.out = nn.Conv2d(width, 2, 1)

    def forward(self, x):
        a = F.relu(self.down1(x))
        b = F.relu(self.down2(F.max_pool2d(a, 2)))
        c = F.relu(self.middle(F.max_pool2d(b, 2)))
        c = torch.cat([self.up2(c), b], dim=1)
        c = F.relu(self.merge2(c))
        d = torch.cat([self.up1(c), a], dim=1)
        return self.out(F.relu(self.merge1(d)))


def get_inputs():
    return [torch.randn(BATCH, 3, SIZE, SIZE)]


def get_init_inputs():
    return [WIDTH]
