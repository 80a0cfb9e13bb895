"""conv_transpose2d with stride, padding and output padding, fp32: learned upsampling.

The weight's layout is (in, out, kernel, kernel), unlike a convolution's, and with a stride only some taps
reach a given output pixel.
"""

import torch
import torch.nn as nn

BATCH, CHANNELS_IN, CHANNELS_OUT, HEIGHT, WIDTH = 2, 24, 16, 11, 14
KERNEL, STRIDE, PADDING, OUTPUT_PADDING = 3, 2, 1, 1

CASES = [
    {"name": "one pixel", "BATCH": 1, "CHANNELS_IN": 1, "CHANNELS_OUT": 1, "HEIGHT": 1, "WIDTH": 1},
    {"name": "prime", "CHANNELS_IN": 7, "CHANNELS_OUT": 5, "HEIGHT": 5, "WIDTH": 13},
    {"name": "stride 3, gaps", "HEIGHT": 4, "WIDTH": 5, "KERNEL": 2, "STRIDE": 3, "PADDING": 0, "OUTPUT_PADDING": 2},
    {"name": "stride 1", "CHANNELS_IN": 17, "HEIGHT": 6, "WIDTH": 9, "KERNEL": 4, "STRIDE": 1, "OUTPUT_PADDING": 0},
]


class Model(nn.Module):
    def __init__(self, channels_in, channels_out, kernel, stride, padding, output_padding):
        super().__init__()
        self.conv = nn.ConvTranspose2d(
            channels_in, channels_out, kernel, stride=stride, padding=padding, output_padding=output_padding
        )

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn(BATCH, CHANNELS_IN, HEIGHT, WIDTH)]


def get_init_inputs():
    # KernelBench's long form: positional arguments, then keywords.
    options = {"stride": STRIDE, "padding": PADDING, "output_padding": OUTPUT_PADDING}
    return [[CHANNELS_IN, CHANNELS_OUT, KERNEL], options]
