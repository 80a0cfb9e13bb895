"""Rotary embedding that rotates the first half the wrong way."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def rotary_kernel(
    x_ptr, cos_ptr, sin_ptr, out_ptr, time, heads, half, BLOCK_HEADS: tl.constexpr, BLOCK_HALF: tl.constexpr
):
    token = tl.program_id(0)
    head = tl.program_id(1) * BLOCK_HEADS + tl.arange(0, BLOCK_HEADS)
    i = tl.arange(0, BLOCK_HALF)
    mask = (head[:, None] < heads) & (i[None, :] < half)

    angle = (token % time).to(tl.int64) * half + i
    cos = tl.load(cos_ptr + angle, mask=i < half, other=0.0).to(tl.float32)[None, :]
    sin = tl.load(sin_ptr + angle, mask=i < half, other=0.0).to(tl.float32)[None, :]

    first_offset = (token.to(tl.int64) * heads + head[:, None]) * 2 * half + i[None, :]
    second_offset = first_offset + half
    first = tl.load(x_ptr + first_offset, mask=mask, other=0.0).to(tl.float32)
    second = tl.load(x_ptr + second_offset, mask=mask, other=0.0).to(tl.float32)

    dtype = out_ptr.dtype.element_ty
    tl.store(out_ptr + first_offset, (first * cos + second * sin).to(dtype), mask=mask)
    tl.store(out_ptr + second_offset, (second * cos + first * sin).to(dtype), mask=mask)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, cos, sin):
        x, cos, sin = x.contiguous(), cos.contiguous(), sin.contiguous()
        batch, time, heads, dimension = x.shape
        half = dimension // 2
        out = torch.empty_like(x)
        block_heads, block_half = 8, triton.next_power_of_2(half)
        grid = (batch * time, triton.cdiv(heads, block_heads))
        rotary_kernel[grid](
            x, cos, sin, out, time, heads, half, BLOCK_HEADS=block_heads, BLOCK_HALF=block_half, num_warps=2
        )
        return out
