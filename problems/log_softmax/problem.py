"""Row log-softmax, fp32, rows longer than a block: logarithms of tiny probabilities stay exact.

log(softmax(x)) would underflow to -inf for the smallest entries; the logarithm of the sum must be taken
instead.
"""

import torch
import torch.nn as nn

ROWS, COLS = 32, 10000
SPREAD = 40.0

CASES = [
    {"name": "two columns", "ROWS": 1, "COLS": 2},
    {"name": "prime", "ROWS": 7, "COLS": 523},
    {"name": "block - 1", "ROWS": 2, "COLS": 2047},
    {"name": "block + 1", "ROWS": 2, "COLS": 2049},
]


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return torch.log_softmax(x, dim=-1)


def get_inputs():
    return [torch.randn(ROWS, COLS) * SPREAD]


def get_init_inputs():
    return []
