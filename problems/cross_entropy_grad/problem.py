"""Mean cross-entropy of logits against int64 targets and its gradient, fp32: a 0-dim output, so a 0-dim cotangent.

The gradient is (softmax - one-hot) / rows, times the cotangent: a candidate that takes the cotangent for 1 is wrong.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS, CLASSES = 96, 1500

CASES = [
    {"name": "two classes", "ROWS": 2, "CLASSES": 2},
    {"name": "prime", "ROWS": 13, "CLASSES": 101},
    {"name": "block + 1", "ROWS": 5, "CLASSES": 1025},
]

GRADIENTS = ("logits",)


class Model(nn.Module):
    def forward(self, logits, target):
        return F.cross_entropy(logits, target)


def get_inputs():
    logits = torch.randn(ROWS, CLASSES) * (2.0 + 6.0 * torch.rand(()))
    return [logits, torch.randint(0, CLASSES, (ROWS,))]


def get_init_inputs():
    return []
