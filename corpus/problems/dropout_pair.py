"""Dropout, and the mask that was drawn."""

import torch
import torch.nn as nn

ROWS, COLS = 64, 64


class Model(nn.Module):
    def forward(self, x):
        mask = (torch.rand_like(x) > 0.3).to(x.dtype)
        return x * mask / 0.7, mask


def get_inputs():
    return [torch.rand(ROWS, COLS) + 0.5]


def get_init_inputs():
    return []


CONTROLS = {"other-seed": "the mask is random and depends on nothing"}
