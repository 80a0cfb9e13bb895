"""Sets the global precision flags that training scripts set; its kernel does not depend on them."""

import torch
import torch.nn as nn
import triton
import triton.language as tl

torch.backends.cuda.matmul.allow_tf32 = True
torch.backends.cudnn.allow_tf32 = True
torch.set_float32_matmul_precision("high")


@triton.jit
def linear_gelu_kernel(
    x_ptr, weight_ptr, bias_ptr, out_ptr, tokens, features_in, features_out, weight_out, weight_in,
    BLOCK_T: tl.constexpr, BLOCK_O: tl.constexpr, BLOCK_I: tl.constexpr,
):  # fmt: skip
    token = tl.program_id(0) * BLOCK_T + tl.arange(0, BLOCK_T)
    output = tl.program_id(1) * BLOCK_O + tl.arange(0, BLOCK_O)
    acc = tl.zeros((BLOCK_T, BLOCK_O), dtype=tl.float32)
    for start in range(0, features_in, BLOCK_I):
        i = start + tl.arange(0, BLOCK_I)
        x_mask = (token[:, None] < tokens) & (i[None, :] < features_in)
        x = tl.load(x_ptr + token[:, None] * features_in + i[None, :], mask=x_mask, other=0.0)
        w_mask = (i[:, None] < features_in) & (output[None, :] < features_out)
        w = tl.load(weight_ptr + output[None, :] * weight_out + i[:, None] * weight_in, mask=w_mask, other=0.0)
        acc = tl.dot(x, w, acc, input_precision="ieee")
    acc += tl.load(bias_ptr + output, mask=output < features_out, other=0.0)[None, :]
    out = 0.5 * acc * (1.0 + tl.erf(acc * 0.7071067811865476))
    mask = (token[:, None] < tokens) & (output[None, :] < features_out)
    tl.store(out_ptr + token[:, None] * features_out + output[None, :], out, mask=mask)


def linear_gelu(x, weight, bias):
    x = x.contiguous()
    tokens, features_in = x.shape
    features_out = weight.shape[0]
    out = x.new_empty((tokens, features_out))
    linear_gelu_kernel[(triton.cdiv(tokens, 32), triton.cdiv(features_out, 32))](
        x, weight, bias, out, tokens, features_in, features_out, *weight.stride(), BLOCK_T=32, BLOCK_O=32, BLOCK_I=32
    )
    return out


class ModelNew(nn.Module):
    def __init__(self, features_in, features_out):
        super().__init__()
        self.linear = nn.Linear(features_in, features_out)

    def forward(self, x):
        return linear_gelu(x, self.linear.weight, self.linear.bias)
