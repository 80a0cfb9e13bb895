"""Causal scaled dot-product attention, fp16, (batch, heads, seq, head_dim)."""

import torch
import torch.nn as nn
import torch.nn.functional as F

B, H, S, D = 1, 2, 70, 16


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def get_inputs():
    return [torch.randn(B, H, S, D).to(torch.float16) for _ in range(3)]


def get_init_inputs():
    return []
