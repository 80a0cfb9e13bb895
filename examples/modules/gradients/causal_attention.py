"""Causal attention, and gradients, fp32."""

import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 2
HEADS = 3
LENGTH = 40
WIDTH = 16

CASES = [
    {"BATCH": 1, "HEADS": 2, "LENGTH": 9, "WIDTH": 16},
]
REALISTIC = {"BATCH": 4, "HEADS": 16, "LENGTH": 1024, "WIDTH": 64}
GRADIENTS = True


class Model(nn.Module):
    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def get_inputs():
    return [
        torch.randn(BATCH, HEADS, LENGTH, WIDTH),
        torch.randn(BATCH, HEADS, LENGTH, WIDTH),
        torch.randn(BATCH, HEADS, LENGTH, WIDTH),
    ]


def get_init_inputs():
    return []
