"""Mean cross-entropy of logits against int64 targets, ignoring the targets -100, fp32: a 0-dim output.

The divisor is the number of targets that count, not the number of rows. The spread of the logits is drawn
anew each time, so that a constant cannot be close for every seed.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS, CLASSES = 96, 2000
IGNORED = -100

CASES = [
    {"name": "two classes", "ROWS": 2, "CLASSES": 2},
    {"name": "prime", "ROWS": 13, "CLASSES": 101},
    {"name": "block - 1", "ROWS": 5, "CLASSES": 1023},
    {"name": "block + 1", "ROWS": 5, "CLASSES": 1025},
]


class Model(nn.Module):
    def __init__(self, ignored):
        super().__init__()
        self.ignored = ignored

    def forward(self, logits, target):
        return F.cross_entropy(logits, target, ignore_index=self.ignored)


def get_inputs():
    logits = torch.randn(ROWS, CLASSES) * (2.0 + 6.0 * torch.rand(()))
    target = torch.randint(0, CLASSES, (ROWS,))
    # Every third target, but never the first: an empty mean would be NaN.
    target[2::3] = IGNORED
    return [logits, target]


def get_init_inputs():
    return [IGNORED]
