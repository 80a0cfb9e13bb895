"""Direct convolution; `nn.Conv2d` only holds parameters and hyper-parameters."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def conv_kernel(
    x_ptr, weight_ptr, bias_ptr, out_ptr, C, H, W, O, OH, OW, stride, padding,
    KH: tl.constexpr, KW: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    sample = tl.program_id(0) // O
    o = tl.program_id(0) % O
    p = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    y, x = (p // OW) * stride - padding, (p % OW) * stride - padding
    acc = tl.zeros((BLOCK,), tl.float32) + tl.load(bias_ptr + o)
    for c in range(C):
        for i in tl.static_range(KH):
            for j in tl.static_range(KW):
                inside = (y + i >= 0) & (y + i < H) & (x + j >= 0) & (x + j < W) & (p < OH * OW)
                value = tl.load(x_ptr + ((sample * C + c) * H + y + i) * W + x + j, mask=inside, other=0.0)
                acc += value * tl.load(weight_ptr + ((o * C + c) * KH + i) * KW + j)
    tl.store(out_ptr + (sample * O + o) * OH * OW + p, tl.maximum(acc, 0.0), mask=p < OH * OW)


class ModelNew(nn.Module):
    def __init__(self, channels_in, channels_out, kernel, stride, padding):
        super().__init__()
        self.conv = nn.Conv2d(channels_in, channels_out, kernel, stride, padding)

    def forward(self, x):
        x, conv = x.contiguous(), self.conv
        (B, C, H, W), (KH, KW) = x.shape, conv.kernel_size
        stride, padding = conv.stride[0], conv.padding[0]
        OH, OW = (H + 2 * padding - KH) // stride + 1, (W + 2 * padding - KW) // stride + 1
        out = x.new_empty((B, conv.out_channels, OH, OW))
        conv_kernel[(B * conv.out_channels, triton.cdiv(OH * OW, 1024))](
            x, conv.weight, conv.bias, out, C, H, W, conv.out_channels, OH, OW, stride, padding,
            KH=KH, KW=KW, BLOCK=1024,
        )  # fmt: skip
        return out
