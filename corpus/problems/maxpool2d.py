"""Max-pooling 3x3, stride 2, padding 1, fp32."""

import torch
import torch.nn as nn
import torch.nn.functional as F

B, C, H, W = 2, 3, 11, 13
KS, ST, PD = 3, 2, 1


class Model(nn.Module):
    def __init__(self, ks, st, pd):
        super().__init__()
        self.ks, self.st, self.pd = ks, st, pd

    def forward(self, x):
        return F.max_pool2d(x, self.ks, self.st, self.pd)


def get_inputs():
    return [torch.randn(B, C, H, W)]


def get_init_inputs():
    return [KS, ST, PD]
