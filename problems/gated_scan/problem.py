"""h[t] = a[t] * h[t-1] + (1 - a[t]) * x[t] with a = sigmoid(gate), fp32: a gated linear recurrence.

Written as a loop it takes a step per time; as a scan over pairs it takes a logarithm of the steps.
"""

import torch
import torch.nn as nn

BATCH, TIME, WIDTH = 3, 100, 160

CASES = [
    {"name": "one step", "BATCH": 1, "TIME": 1, "WIDTH": 1},
    {"name": "prime", "BATCH": 3, "TIME": 37, "WIDTH": 23},
    {"name": "block - 1", "BATCH": 1, "TIME": 63, "WIDTH": 31},
    {"name": "block + 1", "BATCH": 1, "TIME": 65, "WIDTH": 33},
]


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, gate):
        decay = torch.sigmoid(gate)
        fresh = (1.0 - decay) * x
        state = torch.zeros_like(x[:, 0])
        states = []
        for t in range(x.shape[1]):
            state = decay[:, t] * state + fresh[:, t]
            states.append(state)
        return torch.stack(states, dim=1)


def get_inputs():
    return [torch.randn(BATCH, TIME, WIDTH), torch.randn(BATCH, TIME, WIDTH) + 2.0]


def get_init_inputs():
    return []
