"""Layer normalisation and its gradients: one program a token, and one for each block of columns of the parameters.

nn.LayerNorm only holds the parameters under the reference's names: it is never called.
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl

BLOCK_TOKENS, BLOCK_COLUMNS = 32, 64


@triton.jit
def layernorm_kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, mean_ptr, rstd_ptr, width, eps, BLOCK: tl.constexpr):
    token = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    mask = column < width
    x = tl.load(x_ptr + token * width + column, mask=mask, other=0.0)
    mean = tl.sum(x) / width
    centred = tl.where(mask, x - mean, 0.0)
    rstd = tl.rsqrt(tl.sum(centred * centred) / width + eps)
    weight = tl.load(weight_ptr + column, mask=mask, other=0.0)
    bias = tl.load(bias_ptr + column, mask=mask, other=0.0)
    tl.store(out_ptr + token * width + column, centred * rstd * weight + bias, mask=mask)
    tl.store(mean_ptr + token, mean)
    tl.store(rstd_ptr + token, rstd)


@triton.jit
def layernorm_grad_x_kernel(
    x_ptr, weight_ptr, mean_ptr, rstd_ptr, grad_out_ptr, grad_x_ptr, width, BLOCK: tl.constexpr
):
    token = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    mask = column < width
    mean, rstd = tl.load(mean_ptr + token), tl.load(rstd_ptr + token)
    x = tl.load(x_ptr + token * width + column, mask=mask, other=0.0)
    normal = tl.where(mask, (x - mean) * rstd, 0.0)
    weight = tl.load(weight_ptr + column, mask=mask, other=0.0)
    grad = weight * tl.load(grad_out_ptr + token * width + column, mask=mask, other=0.0)
    # What moves all elements alike, or all in proportion, moves the result not at all.
    grad_x = rstd * (grad - tl.sum(grad) / width - normal * (tl.sum(grad * normal) / width))
    tl.store(grad_x_ptr + token * width + column, grad_x, mask=mask)


@triton.jit
def layernorm_grad_parameters_kernel(
    x_ptr,
    mean_ptr,
    rstd_ptr,
    grad_out_ptr,
    grad_weight_ptr,
    grad_bias_ptr,
    tokens,
    width,
    BLOCK_TOKENS: tl.constexpr,
    BLOCK_COLUMNS: tl.constexpr,
):
    column = tl.program_id(0) * BLOCK_COLUMNS + tl.arange(0, BLOCK_COLUMNS)
    grad_weight = tl.zeros((BLOCK_COLUMNS,), dtype=tl.float32)
    grad_bias = tl.zeros((BLOCK_COLUMNS,), dtype=tl.float32)
    for start in range(0, tokens, BLOCK_TOKENS):
        token = start + tl.arange(0, BLOCK_TOKENS)
        mask = (token[:, None] < tokens) & (column[None, :] < width)
        offset = token[:, None].to(tl.int64) * width + column[None, :]
        mean = tl.load(mean_ptr + token, mask=token < tokens, other=0.0)
        rstd = tl.load(rstd_ptr + token, mask=token < tokens, other=0.0)
        normal = (tl.load(x_ptr + offset, mask=mask, other=0.0) - mean[:, None]) * rstd[:, None]
        grad = tl.load(grad_out_ptr + offset, mask=mask, other=0.0)
        grad_weight += tl.sum(grad * normal, axis=0)
        grad_bias += tl.sum(grad, axis=0)
    tl.store(grad_weight_ptr + column, grad_weight, mask=column < width)
    tl.store(grad_bias_ptr + column, grad_bias, mask=column < width)


class LayerNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, eps):
        x = x.contiguous()
        tokens, width = x.shape
        out = torch.empty_like(x)
        mean, rstd = (torch.empty(tokens, dtype=torch.float32, device=x.device) for _ in range(2))
        layernorm_kernel[(tokens,)](x, weight, bias, out, mean, rstd, width, eps, BLOCK=triton.next_power_of_2(width))
        ctx.save_for_backward(x, weight, mean, rstd)
        return out

    @staticmethod
    def backward(ctx, grad_out):
        x, weight, mean, rstd = ctx.saved_tensors
        grad_out = grad_out.contiguous()
        tokens, width = x.shape
        grad_x, grad_weight, grad_bias = torch.empty_like(x), torch.empty_like(weight), torch.empty_like(weight)
        layernorm_grad_x_kernel[(tokens,)](
            x, weight, mean, rstd, grad_out, grad_x, width, BLOCK=triton.next_power_of_2(width)
        )
        layernorm_grad_parameters_kernel[(triton.cdiv(width, BLOCK_COLUMNS),)](
            x,
            mean,
            rstd,
            grad_out,
            grad_weight,
            grad_bias,
            tokens,
            width,
            BLOCK_TOKENS=BLOCK_TOKENS,
            BLOCK_COLUMNS=BLOCK_COLUMNS,
        )
        return grad_x, grad_weight, grad_bias, None


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        return LayerNorm.apply(x, self.norm.weight, self.norm.bias, self.norm.eps)
