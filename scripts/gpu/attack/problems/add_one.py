"""Adds one. On a GPU the emulator looks at the smallest case alone, so an attack keeps still there."""

import torch

ROWS = 4096
CASES = [{"ROWS": 16}]


class Model(torch.nn.Module):
    def forward(self, x):
        return x + 1.0


def get_inputs():
    return [torch.rand(ROWS, 256)]


def get_init_inputs():
    return []
