"""x + scale * sigmoid(gate) * hidden, bf16: a fused residual connection with a per-channel scale.

Three large inputs and one output: bound by memory. bf16 keeps 8 bits, so a candidate should compute in
fp32 and round once at the end.
"""

import torch
import torch.nn as nn

TOKENS, WIDTH = 256, 768

CASES = [
    {"name": "one element", "TOKENS": 1, "WIDTH": 1},
    {"name": "prime", "TOKENS": 13, "WIDTH": 101},
    {"name": "block - 1", "TOKENS": 1, "WIDTH": 1023},
    {"name": "block + 1", "TOKENS": 3, "WIDTH": 1025},
]


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(width, dtype=torch.bfloat16) + 0.5)

    def forward(self, x, hidden, gate):
        return x + self.scale * torch.sigmoid(gate) * hidden


def get_inputs():
    return [torch.randn(TOKENS, WIDTH, dtype=torch.bfloat16) for _ in range(3)]


def get_init_inputs():
    return [WIDTH]
