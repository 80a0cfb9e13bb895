"""RMS normalisation in fp16 and its gradients; all arithmetic in fp32, one program a token or block of columns."""

import torch
import torch.nn as nn
import triton
import triton.language as tl

BLOCK_TOKENS, BLOCK_COLUMNS = 32, 64


@triton.jit
def rmsnorm_kernel(x_ptr, weight_ptr, out_ptr, rstd_ptr, width, eps, BLOCK: tl.constexpr):
    token = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    mask = column < width
    x = tl.load(x_ptr + token * width + column, mask=mask, other=0.0).to(tl.float32)
    rstd = tl.rsqrt(tl.sum(x * x) / width + eps)
    weight = tl.load(weight_ptr + column, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + token * width + column, (x * rstd * weight).to(tl.float16), mask=mask)
    tl.store(rstd_ptr + token, rstd)


@triton.jit
def rmsnorm_grad_x_kernel(x_ptr, weight_ptr, rstd_ptr, grad_out_ptr, grad_x_ptr, width, BLOCK: tl.constexpr):
    token = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    mask = column < width
    rstd = tl.load(rstd_ptr + token)
    normal = tl.load(x_ptr + token * width + column, mask=mask, other=0.0).to(tl.float32) * rstd
    weight = tl.load(weight_ptr + column, mask=mask, other=0.0).to(tl.float32)
    grad = weight * tl.load(grad_out_ptr + token * width + column, mask=mask, other=0.0).to(tl.float32)
    grad_x = rstd * (grad - normal * (tl.sum(grad * normal) / width))
    tl.store(grad_x_ptr + token * width + column, grad_x.to(tl.float16), mask=mask)


@triton.jit
def rmsnorm_grad_weight_kernel(
    x_ptr,
    rstd_ptr,
    grad_out_ptr,
    grad_weight_ptr,
    tokens,
    width,
    BLOCK_TOKENS: tl.constexpr,
    BLOCK_COLUMNS: tl.constexpr,
):
    column = tl.program_id(0) * BLOCK_COLUMNS + tl.arange(0, BLOCK_COLUMNS)
    grad_weight = tl.zeros((BLOCK_COLUMNS,), dtype=tl.float32)
    for start in range(0, tokens, BLOCK_TOKENS):
        token = start + tl.arange(0, BLOCK_TOKENS)
        mask = (token[:, None] < tokens) & (column[None, :] < width)
        offset = token[:, None].to(tl.int64) * width + column[None, :]
        rstd = tl.load(rstd_ptr + token, mask=token < tokens, other=0.0)
        normal = tl.load(x_ptr + offset, mask=mask, other=0.0).to(tl.float32) * rstd[:, None]
        grad_weight += tl.sum(normal * tl.load(grad_out_ptr + offset, mask=mask, other=0.0).to(tl.float32), axis=0)
    tl.store(grad_weight_ptr + column, grad_weight.to(tl.float16), mask=column < width)


class RmsNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, eps):
        x = x.contiguous()
        tokens, width = x.shape
        out = torch.empty_like(x)
        rstd = torch.empty(tokens, dtype=torch.float32, device=x.device)
        rmsnorm_kernel[(tokens,)](x, weight, out, rstd, width, eps, BLOCK=triton.next_power_of_2(width))
        ctx.save_for_backward(x, weight, rstd)
        return out

    @staticmethod
    def backward(ctx, grad_out):
        x, weight, rstd = ctx.saved_tensors
        grad_out = grad_out.contiguous()
        tokens, width = x.shape
        grad_x, grad_weight = torch.empty_like(x), torch.empty_like(weight)
        rmsnorm_grad_x_kernel[(tokens,)](x, weight, rstd, grad_out, grad_x, width, BLOCK=triton.next_power_of_2(width))
        rmsnorm_grad_weight_kernel[(triton.cdiv(width, BLOCK_COLUMNS),)](
            x,
            rstd,
            grad_out,
            grad_weight,
            tokens,
            width,
            BLOCK_TOKENS=BLOCK_TOKENS,
            BLOCK_COLUMNS=BLOCK_COLUMNS,
        )
        return grad_x, grad_weight, None


class ModelNew(nn.Module):
    def __init__(self, width, eps):
        super().__init__()
        self.weight = nn.Parameter((torch.rand(width) + 0.5).half())
        self.eps = eps

    def forward(self, x):
        return RmsNorm.apply(x, self.weight, self.eps)
