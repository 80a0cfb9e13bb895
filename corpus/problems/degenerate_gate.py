"""DEGENERATE on purpose: a log-softmax over an axis of size one is 0 for every finite input,
so the output is exp(0) * 0.5 = 0.5 everywhere. An evaluator should flag the problem itself."""

import torch
import torch.nn as nn

ROWS, COLS = 64, 300


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        score = x.square().sum(dim=1, keepdim=True)
        return torch.log_softmax(score, dim=1).exp() * 0.5


def get_inputs():
    return [torch.randn(ROWS, COLS)]


def get_init_inputs():
    return []
