"""The mean over features comes first: mean(x W^T + b) = x . mean(W) + mean(b)."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def column_mean_kernel(weight_ptr, out_ptr, rows, cols, BLOCK: tl.constexpr, ROWS: tl.constexpr):
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, rows, ROWS):
        row = start + tl.arange(0, ROWS)
        mask = (row[:, None] < rows) & (column[None, :] < cols)
        total += tl.sum(tl.load(weight_ptr + row[:, None] * cols + column[None, :], mask=mask, other=0.0), axis=0)
    tl.store(out_ptr + column, total / rows, mask=column < cols)


@triton.jit
def dot_kernel(x_ptr, mean_ptr, bias_ptr, out_ptr, cols, features, BLOCK: tl.constexpr, BIAS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, cols, BLOCK):
        column = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * cols + column, mask=column < cols, other=0.0)
        total += x * tl.load(mean_ptr + column, mask=column < cols, other=0.0)
    feature = tl.arange(0, BIAS)
    bias = tl.load(bias_ptr + feature, mask=feature < features, other=0.0)
    tl.store(out_ptr + row, tl.sum(total) + tl.sum(bias) / features)


class ModelNew(nn.Module):
    def __init__(self, features_in, features_out):
        super().__init__()
        self.linear = nn.Linear(features_in, features_out)

    def forward(self, x):
        x = x.contiguous()
        weight, bias = self.linear.weight, self.linear.bias
        features, cols = weight.shape
        mean = x.new_empty(cols)
        column_mean_kernel[(triton.cdiv(cols, 64),)](weight, mean, features, cols, BLOCK=64, ROWS=16)
        out = x.new_empty(x.shape[0])
        dot_kernel[(x.shape[0],)](x, mean, bias, out, cols, features, BLOCK=128, BIAS=triton.next_power_of_2(features))
        return out
