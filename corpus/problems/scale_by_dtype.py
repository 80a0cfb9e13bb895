"""1.5 * x in the dtype of x, which differs from case to case: fp32, fp16, bf16."""

import torch
import torch.nn as nn

SIZE = 5000
DTYPE = "float32"

CASES = [
    {"name": "half", "SIZE": 1000, "DTYPE": "float16"},
    {"name": "bfloat16", "SIZE": 1001, "DTYPE": "bfloat16"},
    {"name": "one element", "SIZE": 1},
]


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return x * 1.5


def get_inputs():
    return [torch.randn(SIZE).to(getattr(torch, DTYPE))]


def get_init_inputs():
    return []
