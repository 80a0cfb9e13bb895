"""Rotary position embedding of (batch, time, heads, dimension), fp16: pairs (i, i + d/2) are rotated.

The angles depend on time and dimension but not on batch and head. Products of the rotation are close to
cancelling for some angles, so they should be taken in fp32.
"""

import torch
import torch.nn as nn

BATCH, TIME, HEADS, HALF = 2, 96, 8, 32
BASE = 10000.0

CASES = [
    {"name": "one pair", "BATCH": 1, "TIME": 1, "HEADS": 1, "HALF": 1},
    {"name": "prime", "BATCH": 3, "TIME": 7, "HEADS": 5, "HALF": 13},
    {"name": "block + 1", "BATCH": 1, "TIME": 5, "HEADS": 3, "HALF": 33},
]


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, cos, sin):
        cos, sin = cos[:, None, :], sin[:, None, :]
        first, second = x.chunk(2, dim=-1)
        return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


def get_inputs():
    frequency = BASE ** (-torch.arange(HALF) / HALF)
    # Positions from a random start, so that no angle is always zero.
    angle = (torch.randint(1, 5000, ()) + torch.arange(TIME))[:, None] * frequency
    x = torch.randn(BATCH, TIME, HEADS, 2 * HALF, dtype=torch.float16)
    return [x, angle.cos().half(), angle.sin().half()]


def get_init_inputs():
    return []
