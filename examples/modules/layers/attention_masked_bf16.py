"""Attention with a bias and grouped heads, bf16."""

import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 1
HEADS = 4
QUERIES = 40
HEAD = 32

CASES = [
    {"QUERIES": 9, "HEAD": 16},
]
REALISTIC = {"BATCH": 8, "HEADS": 16, "QUERIES": 1024, "HEAD": 64}


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, q, k, v, bias):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=bias)


def get_inputs():
    return [
        torch.randn(BATCH, HEADS, QUERIES, HEAD, dtype=torch.bfloat16),
        torch.randn(BATCH, HEADS, QUERIES, HEAD, dtype=torch.bfloat16),
        torch.randn(BATCH, HEADS, QUERIES, HEAD, dtype=torch.bfloat16),
        torch.randn(QUERIES, QUERIES, dtype=torch.bfloat16),
    ]


def get_init_inputs():
    return []
