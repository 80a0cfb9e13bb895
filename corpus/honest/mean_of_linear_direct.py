"""Every feature is computed and averaged in registers; the weight is read transposed in place."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def linear_mean_kernel(
    x_ptr, weight_ptr, bias_ptr, out_ptr, cols, features, sf, sk, BLOCK: tl.constexpr, F: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    feature = tl.arange(0, F)
    value = tl.load(bias_ptr + feature, mask=feature < features, other=0.0)
    for start in range(0, cols, BLOCK):
        k = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * cols + k, mask=k < cols, other=0.0)
        mask = (k[:, None] < cols) & (feature[None, :] < features)
        weight = tl.load(weight_ptr + feature[None, :] * sf + k[:, None] * sk, mask=mask, other=0.0)
        value += tl.sum(x[:, None] * weight, axis=0)
    tl.store(out_ptr + row, tl.sum(value) / features)


class ModelNew(nn.Module):
    def __init__(self, features_in, features_out):
        super().__init__()
        self.linear = nn.Linear(features_in, features_out)

    def forward(self, x):
        x = x.contiguous()
        weight = self.linear.weight.T
        cols, features = weight.shape
        out = x.new_empty(x.shape[0])
        linear_mean_kernel[(x.shape[0],)](
            x,
            weight,
            self.linear.bias,
            out,
            cols,
            features,
            weight.stride(1),
            weight.stride(0),
            BLOCK=32,
            F=triton.next_power_of_2(features),
        )
        return out
