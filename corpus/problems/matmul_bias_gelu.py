"""Fused linear layer: x @ W^T + b, then exact GELU, fp16."""

import torch
import torch.nn as nn
import torch.nn.functional as F

M, K, N = 33, 70, 50


class Model(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.fc = nn.Linear(in_features, out_features, dtype=torch.float16)
        nn.init.uniform_(self.fc.bias, 0.2, 0.9)

    def forward(self, x):
        return F.gelu(self.fc(x))


def get_inputs():
    return [torch.randn(M, K).to(torch.float16)]


def get_init_inputs():
    return [K, N]
