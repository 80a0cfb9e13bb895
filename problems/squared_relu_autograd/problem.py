"""scale * relu(x)^2 with a per-channel scale, and its gradients, fp32."""

import torch
import torch.nn as nn

ROWS, COLS = 250, 800

CASES = [
    {"name": "one element", "ROWS": 1, "COLS": 1},
    {"name": "prime", "ROWS": 7, "COLS": 109},
    {"name": "block - 1", "ROWS": 3, "COLS": 511},
    {"name": "block + 1", "ROWS": 3, "COLS": 513},
]

GRADIENTS = True
CONTROLS = {"skipped-stage": "grad x ends with the derivative of relu, where a factor relu(x) has made zeros already"}


class Model(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(cols) + 0.5)

    def forward(self, x):
        return self.scale * torch.relu(x).square()


def get_inputs():
    return [torch.randn(ROWS, COLS)]


def get_init_inputs():
    return [COLS]
