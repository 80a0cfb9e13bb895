"""RMS normalisation over the last dimension and its gradients, fp16 with fp32 statistics.

The gradient of the weight is a sum over all tokens: one that is accumulated in fp16 loses too much.
"""

import torch
import torch.nn as nn

TOKENS, WIDTH = 192, 320
EPS = 1e-5

CASES = [
    {"name": "three columns", "TOKENS": 2, "WIDTH": 3},
    {"name": "prime", "TOKENS": 19, "WIDTH": 127},
    {"name": "block + 1", "TOKENS": 3, "WIDTH": 257},
]

GRADIENTS = ("x", "weight")


class Model(nn.Module):
    def __init__(self, width, eps):
        super().__init__()
        self.weight = nn.Parameter((torch.rand(width) + 0.5).half())
        self.eps = eps

    def forward(self, x):
        wide = x.float()
        normal = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.eps)
        return (normal * self.weight.float()).to(x.dtype)


def get_inputs():
    return [torch.randn(TOKENS, WIDTH).half()]


def get_init_inputs():
    return [WIDTH, EPS]
