"""Group normalisation of an NCHW tensor with a per-channel affine map, fp32.

The statistics span several channels while weight and bias change with each channel, so the two index
computations differ.
"""

import torch
import torch.nn as nn

BATCH, GROUPS, CHANNELS, HEIGHT, WIDTH = 6, 4, 32, 20, 20

CASES = [
    {"name": "one channel a group", "BATCH": 1, "GROUPS": 3, "CHANNELS": 3, "HEIGHT": 1, "WIDTH": 5},
    {"name": "prime", "BATCH": 3, "GROUPS": 2, "CHANNELS": 10, "HEIGHT": 7, "WIDTH": 11},
    {"name": "block + 1", "BATCH": 1, "GROUPS": 1, "CHANNELS": 5, "HEIGHT": 5, "WIDTH": 41},
]


class Model(nn.Module):
    def __init__(self, groups, channels):
        super().__init__()
        self.norm = nn.GroupNorm(groups, channels)

    def forward(self, x):
        return self.norm(x)


def get_inputs():
    offset = torch.randn(BATCH, CHANNELS, 1, 1)
    return [torch.randn(BATCH, CHANNELS, HEIGHT, WIDTH) + offset]


def get_init_inputs():
    return [GROUPS, CHANNELS]
