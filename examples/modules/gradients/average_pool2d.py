"""Average pooling, 2 by 2, and gradients, fp32."""

import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 2
CHANNELS = 6
HEIGHT = 14
WIDTH = 18

CASES = [
    {"BATCH": 1, "CHANNELS": 4, "HEIGHT": 8, "WIDTH": 10},
]
REALISTIC = {"BATCH": 16, "CHANNELS": 64, "HEIGHT": 64, "WIDTH": 64}
GRADIENTS = True


class Model(nn.Module):
    def forward(self, x):
        return F.avg_pool2d(x, 2)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, HEIGHT, WIDTH)]


def get_init_inputs():
    return []
