"""One AdamW step in place: weights and both moments are updated where they lie, and the weights returned.

The output is the first input itself, and all three inputs must hold the new values afterwards.
"""

import torch
import torch.nn as nn

SIZE = 100000
RATE, DECAY = 0.1, 0.02

CASES = [
    {"name": "one element", "SIZE": 1},
    {"name": "prime", "SIZE": 997},
    {"name": "block - 1", "SIZE": 1023},
    {"name": "block + 1", "SIZE": 1025},
]


class Model(nn.Module):
    def __init__(self, rate, decay):
        super().__init__()
        self.rate = rate
        self.decay = decay
        self.beta1 = 0.9
        self.beta2 = 0.99
        self.eps = 1e-6

    def forward(self, weight, gradient, moment, square):
        moment.mul_(self.beta1).add_(gradient, alpha=1.0 - self.beta1)
        square.mul_(self.beta2).addcmul_(gradient, gradient, value=1.0 - self.beta2)
        weight.mul_(1.0 - self.rate * self.decay)
        weight.addcdiv_(moment, square.sqrt().add_(self.eps), value=-self.rate)
        return weight


def get_inputs():
    return [torch.randn(SIZE), torch.randn(SIZE), torch.randn(SIZE), torch.rand(SIZE) + 0.01]


def get_init_inputs():
    return [RATE, DECAY]
