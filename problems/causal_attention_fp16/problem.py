"""Causal scaled-dot-product attention, fp16: softmax(Q K^T / sqrt(d), masked) V.

The scores need never reach memory. The first query sees one key only, and the last block of keys is cut by
both the causal mask and the end of the sequence.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH, HEADS, TIME, HEAD = 2, 2, 200, 64

CASES = [
    {"name": "one step", "BATCH": 1, "HEADS": 1, "TIME": 1, "HEAD": 16},
    {"name": "prime", "BATCH": 1, "HEADS": 3, "TIME": 37, "HEAD": 40},
    {"name": "block - 1", "BATCH": 1, "HEADS": 1, "TIME": 63, "HEAD": 32},
    {"name": "block + 1", "BATCH": 1, "HEADS": 1, "TIME": 65, "HEAD": 32},
]


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, query, key, value):
        return F.scaled_dot_product_attention(query, key, value, is_causal=True)


def get_inputs():
    return [torch.randn(BATCH, HEADS, TIME, HEAD, dtype=torch.float16) for _ in range(3)]


def get_init_inputs():
    return []
