"""fp32 linear layer followed by tanh: full fp32 accuracy is asked for."""

import torch
import torch.nn as nn

M, K, N = 30, 100, 41


class Model(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.fc = nn.Linear(in_features, out_features)

    def forward(self, x):
        return torch.tanh(self.fc(x))


def get_inputs():
    return [torch.randn(M, K)]


def get_init_inputs():
    return [K, N]
