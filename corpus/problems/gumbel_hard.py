"""One-hot rows by the Gumbel trick."""

import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS, COLS = 64, 16


class Model(nn.Module):
    def forward(self, x):
        return F.gumbel_softmax(x, hard=True)


def get_inputs():
    return [torch.randn(ROWS, COLS)]


def get_init_inputs():
    return []
