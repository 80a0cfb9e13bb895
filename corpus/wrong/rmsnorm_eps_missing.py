"""RMS norm without eps."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def rmsnorm_kernel(
    x_ptr, weight_ptr, out_ptr, tokens, width, eps, BLOCK_TOKENS: tl.constexpr, BLOCK_WIDTH: tl.constexpr
):
    token = (tl.program_id(0) * BLOCK_TOKENS + tl.arange(0, BLOCK_TOKENS)).to(tl.int64)
    column = tl.arange(0, BLOCK_WIDTH)
    mask = (token[:, None] < tokens) & (column[None, :] < width)
    offset = token[:, None] * width + column[None, :]

    x = tl.load(x_ptr + offset, mask=mask, other=0.0).to(tl.float32)
    rstd = tl.rsqrt(tl.sum(x * x, axis=1) / width)

    weight = tl.load(weight_ptr + column, mask=column < width, other=0.0).to(tl.float32)
    out = x * rstd[:, None] * weight[None, :]
    tl.store(out_ptr + offset, out.to(out_ptr.dtype.element_ty), mask=mask)


class ModelNew(nn.Module):
    def __init__(self, width, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(width, dtype=torch.float16) + 0.5)
        self.eps = eps

    def forward(self, x):
        x = x.contiguous()
        tokens, width = x.shape
        out = torch.empty_like(x)
        block_width = triton.next_power_of_2(width)
        block_tokens = max(1, min(16, 4096 // block_width))
        rmsnorm_kernel[(triton.cdiv(tokens, block_tokens),)](
            x, self.weight, out, tokens, width, self.eps, BLOCK_TOKENS=block_tokens, BLOCK_WIDTH=block_width
        )
        return out
