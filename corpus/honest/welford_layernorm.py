"""Layer normalisation with Welford's algorithm: triples (mean, sum of squares, count) merged by `tl.reduce`."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def merge(mean_a, m2_a, count_a, mean_b, m2_b, count_b):
    count = count_a + count_b
    share = tl.where(count > 0, count_b / count, 0.0)
    delta = mean_b - mean_a
    return mean_a + delta * share, m2_a + m2_b + delta * delta * count_a * share, count


@triton.jit
def layernorm_kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, width, eps, BLOCK: tl.constexpr):
    token = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    mask = column < width
    x = tl.load(x_ptr + token * width + column, mask=mask, other=0.0)
    mean, m2, count = tl.reduce((x, tl.zeros_like(x), mask.to(tl.float32)), 0, merge)
    y = (x - mean) * tl.rsqrt(m2 / count + eps)
    y = y * tl.load(weight_ptr + column, mask=mask) + tl.load(bias_ptr + column, mask=mask)
    tl.store(out_ptr + token * width + column, y, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        x = x.contiguous()
        tokens, width = x.shape
        out = torch.empty_like(x)
        layernorm_kernel[(tokens,)](
            x, self.norm.weight, self.norm.bias, out, width, self.norm.eps, BLOCK=triton.next_power_of_2(width)
        )
        return out
