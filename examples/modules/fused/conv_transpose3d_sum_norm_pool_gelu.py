"""Three-dimensional transposed convolution, a learnt sum, layer norm over the last dimension, pooling, GELU."""

import torch
import torch.nn as nn

BATCH = 2
CHANNELS = 3
DEPTH = 4
SIZE = 6

CASES = [
    {"BATCH": 1, "CHANNELS": 2, "DEPTH": 3, "SIZE": 5},
]
REALISTIC = {"BATCH": 16, "CHANNELS": 32, "DEPTH": 16, "SIZE": 32}


class Model(nn.Module):
    def __init__(self, channels, size):
        super().__init__()
        self.conv = nn.ConvTranspose3d(
            channels, 4, (3, 3, 3), stride=(2, 2, 2), padding=(1, 1, 1), output_padding=(1, 1, 1)
        )
        self.weight = nn.Parameter(torch.tensor(1.5))
        self.norm = nn.LayerNorm(2 * size)
        self.pool = nn.AvgPool3d((2, 2, 2))

    def forward(self, x):
        return torch.nn.functional.gelu(self.pool(self.norm(self.conv(x) + self.weight)))


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, DEPTH, SIZE, SIZE)]


def get_init_inputs():
    return [CHANNELS, SIZE]
