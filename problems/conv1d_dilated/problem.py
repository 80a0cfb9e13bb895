"""relu(conv1d(x)) with dilation and padding, fp32: one layer of a dilated stack."""

import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH, CHANNELS_IN, CHANNELS_OUT, TIME = 2, 24, 40, 300
KERNEL, DILATION, PADDING = 5, 3, 6

CASES = [
    {"name": "one step", "BATCH": 1, "CHANNELS_IN": 1, "CHANNELS_OUT": 1, "TIME": 1},
    {"name": "prime", "CHANNELS_IN": 7, "CHANNELS_OUT": 11, "TIME": 101},
    {"name": "block + 1, shorter output", "CHANNELS_IN": 17, "CHANNELS_OUT": 33, "TIME": 77, "PADDING": 0},
    {"name": "pointwise", "TIME": 63, "KERNEL": 1, "DILATION": 1, "PADDING": 0},
]


class Model(nn.Module):
    def __init__(self, channels_in, channels_out, kernel, dilation, padding):
        super().__init__()
        self.conv = nn.Conv1d(channels_in, channels_out, kernel, dilation=dilation, padding=padding)

    def forward(self, x):
        return F.relu(self.conv(x))


def get_inputs():
    return [torch.randn(BATCH, CHANNELS_IN, TIME)]


def get_init_inputs():
    return [CHANNELS_IN, CHANNELS_OUT, KERNEL, DILATION, PADDING]
