"""Self-attention with two heads, a residual and layer normalisation, and gradients, fp32."""

import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 2
LENGTH = 20
WIDTH = 32

CASES = [
    {"BATCH": 1, "LENGTH": 7, "WIDTH": 16},
    {"BATCH": 3, "LENGTH": 11, "WIDTH": 24},
]
REALISTIC = {"BATCH": 4, "LENGTH": 1024, "WIDTH": 512}
GRADIENTS = True


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm(x)).view(batch, length, 3, 2, width // 2).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(batch, length, width)
        return x + self.out(mixed)


def get_inputs():
    return [torch.randn(BATCH, LENGTH, WIDTH)]


def get_init_inputs():
    return [WIDTH]
