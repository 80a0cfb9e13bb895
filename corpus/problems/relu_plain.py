import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        pass

    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(1000)]


def get_init_inputs():
    return []
