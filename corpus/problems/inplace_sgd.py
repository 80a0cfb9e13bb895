"""In-place semantics: momentum-SGD step; updates p and m where they lie and returns p itself."""

import torch
import torch.nn as nn

N = 4099
LR, MU = 0.1, 0.9


class Model(nn.Module):
    def __init__(self, lr, mu):
        super().__init__()
        self.lr, self.mu = lr, mu

    def forward(self, p, g, m):
        m.mul_(self.mu).add_(g)
        p.add_(m, alpha=-self.lr)
        return p


def get_inputs():
    return [torch.randn(N), torch.randn(N), torch.randn(N)]


def get_init_inputs():
    return [LR, MU]
