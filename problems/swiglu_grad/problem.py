"""silu(gate) * up and the gradients of both, fp32; `gate` and `up` are halves of one tensor, so their rows are apart.

Gradients are tensors of their own, without gaps.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS, COLS = 130, 600

CASES = [
    {"name": "one element", "ROWS": 1, "COLS": 1},
    {"name": "prime", "ROWS": 7, "COLS": 109},
    {"name": "block + 1", "ROWS": 3, "COLS": 513},
]

GRADIENTS = True


class Model(nn.Module):
    def forward(self, gate, up):
        return F.silu(gate) * up


def get_inputs():
    both = torch.randn(ROWS, 2 * COLS) * 2.0 + 0.5
    return list(both.chunk(2, dim=1))


def get_init_inputs():
    return []
