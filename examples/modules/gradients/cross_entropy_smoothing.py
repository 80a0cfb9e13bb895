"""Cross-entropy with label smoothing, and gradients, fp32."""

import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = 60
COLS = 200

CASES = [
    {"ROWS": 5, "COLS": 37},
]
REALISTIC = {"ROWS": 4096, "COLS": 4096}
GRADIENTS = ("logits",)


class Model(nn.Module):
    def forward(self, logits, target):
        return F.cross_entropy(logits, target, label_smoothing=0.1)


def get_inputs():
    return [torch.randn(ROWS, COLS) * 2.0, torch.randint(0, COLS, (ROWS,))]


def get_init_inputs():
    return []
