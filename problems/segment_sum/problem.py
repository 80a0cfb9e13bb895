"""Sum of the rows that share a segment id (index_add), fp32: a scatter with collisions.

Every segment receives many rows and some receive none, so the output must start at zero and the additions
must be atomic.
"""

import torch
import torch.nn as nn

ITEMS, SEGMENTS, WIDTH = 1500, 60, 64

CASES = [
    {"name": "one item", "ITEMS": 1, "SEGMENTS": 1, "WIDTH": 1},
    {"name": "prime", "ITEMS": 101, "SEGMENTS": 13, "WIDTH": 37},
    {"name": "block - 1", "ITEMS": 31, "SEGMENTS": 7, "WIDTH": 63},
    {"name": "block + 1", "ITEMS": 33, "SEGMENTS": 70, "WIDTH": 65},
]


class Model(nn.Module):
    def __init__(self, segments):
        super().__init__()
        self.segments = segments

    def forward(self, x, segment):
        total = torch.zeros(self.segments, x.shape[1], dtype=x.dtype, device=x.device)
        return total.index_add(0, segment, x)


def get_inputs():
    return [torch.randn(ITEMS, WIDTH), torch.randint(0, SEGMENTS, (ITEMS,))]


def get_init_inputs():
    return [SEGMENTS]
