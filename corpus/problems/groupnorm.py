"""GroupNorm with affine parameters, fp32, NCHW."""

import torch
import torch.nn as nn

B, C, H, W = 3, 12, 5, 7
GROUPS, EPS = 4, 1e-5


class Model(nn.Module):
    def __init__(self, groups, channels, eps):
        super().__init__()
        self.gn = nn.GroupNorm(groups, channels, eps=eps)
        nn.init.uniform_(self.gn.weight, 0.5, 1.5)
        nn.init.normal_(self.gn.bias, 0.0, 0.3)

    def forward(self, x):
        return self.gn(x)


def get_inputs():
    return [torch.randn(B, C, H, W) * 1.7 + 0.4]


def get_init_inputs():
    return [GROUPS, C, EPS]
