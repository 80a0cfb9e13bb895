"""Scaled dot-product attention, fp32."""

import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 1
HEADS = 2
QUERIES = 45
HEAD = 32

CASES = [
    {"QUERIES": 1, "HEAD": 8},
    {"QUERIES": 70, "HEAD": 40},
]
REALISTIC = {"BATCH": 8, "HEADS": 16, "QUERIES": 1024, "HEAD": 64}


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v)


def get_inputs():
    return [
        torch.randn(BATCH, HEADS, QUERIES, HEAD),
        torch.randn(BATCH, HEADS, QUERIES, HEAD),
        torch.randn(BATCH, HEADS, QUERIES, HEAD),
    ]


def get_init_inputs():
    return []
