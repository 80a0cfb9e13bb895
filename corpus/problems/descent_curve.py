"""Loss curve of gradient descent on a least-squares problem, fp32: a small simulated training run.

`forward` takes a (ROWS, COLS) matrix, a target, a start and a learning rate, and returns the loss before each
step. A smooth ramp looks like one.
"""

import torch
import torch.nn as nn

ROWS, COLS = 24, 16
STEPS = 20

CASES = [{"name": "short", "ROWS": 7, "COLS": 5, "STEPS": 3}]


class Model(nn.Module):
    def __init__(self, steps):
        super().__init__()
        self.steps = steps

    def forward(self, a, b, w, rate):
        losses = []
        for _ in range(self.steps):
            error = a @ w - b
            losses.append(error.square().mean())
            w = w - rate * (a.t() @ error) * (2.0 / a.shape[0])
        return torch.stack(losses)


def get_inputs():
    a = torch.randn(ROWS, COLS)
    return [a, torch.randn(ROWS), torch.randn(COLS) * 2.0, 0.02]


def get_init_inputs():
    return [STEPS]
