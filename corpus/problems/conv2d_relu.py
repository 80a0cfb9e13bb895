"""3x3 convolution with padding 1, then ReLU, fp32."""

import torch
import torch.nn as nn

B, CIN, COUT, H, W = 2, 3, 5, 9, 11
KS, PAD = 3, 1


class Model(nn.Module):
    def __init__(self, cin, cout, ks, pad):
        super().__init__()
        self.conv = nn.Conv2d(cin, cout, ks, padding=pad)

    def forward(self, x):
        return torch.relu(self.conv(x))


def get_inputs():
    return [torch.randn(B, CIN, H, W)]


def get_init_inputs():
    return [CIN, COUT, KS, PAD]
