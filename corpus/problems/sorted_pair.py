"""Values in order, and where they were."""

import torch
import torch.nn as nn

ROWS, COLS = 9, 32


class Model(nn.Module):
    def forward(self, x):
        return torch.sort(x, dim=1)


def get_inputs():
    return [torch.randn(ROWS, COLS)]


def get_init_inputs():
    return []
