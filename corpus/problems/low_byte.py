import torch
import torch.nn as nn

N = 1003


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        pass

    def forward(self, x):
        return x & 255


def get_inputs():
    return [torch.randint(-100000, 100000, (N,), dtype=torch.int32)]


def get_init_inputs():
    return []
