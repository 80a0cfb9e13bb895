"""Every row becomes the mean of all rows, in memory of its own."""

import torch
import torch.nn as nn

ROWS, COLS = 7, 30


class Model(nn.Module):
    def forward(self, x):
        return x.mean(0, keepdim=True).repeat(x.shape[0], 1)


def get_inputs():
    return [torch.randn(ROWS, COLS)]


def get_init_inputs():
    return []
