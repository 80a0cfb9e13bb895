"""avg_pool2d, 3x3, stride 2, padding 1, with the padding left out of the count, NCHW, fp16.

Along the border the divisor is the number of real pixels, so dividing by 9 everywhere is wrong.
"""

import torch
import torch.nn as nn

BATCH, CHANNELS, HEIGHT, WIDTH = 4, 24, 40, 44
KERNEL, STRIDE, PADDING = 3, 2, 1

CASES = [
    {"name": "one pixel", "BATCH": 1, "CHANNELS": 1, "HEIGHT": 1, "WIDTH": 1},
    {"name": "prime", "CHANNELS": 3, "HEIGHT": 13, "WIDTH": 23},
    {"name": "block + 1, no overlap", "CHANNELS": 2, "HEIGHT": 6, "WIDTH": 342, "KERNEL": 2, "PADDING": 0},
]


class Model(nn.Module):
    def __init__(self, kernel, stride, padding):
        super().__init__()
        self.pool = nn.AvgPool2d(kernel, stride=stride, padding=padding, count_include_pad=False)

    def forward(self, x):
        return self.pool(x)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, HEIGHT, WIDTH, dtype=torch.float16) + 1.0]


def get_init_inputs():
    return [KERNEL, STRIDE, PADDING]
