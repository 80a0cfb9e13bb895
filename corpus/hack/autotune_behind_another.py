"""An autotuned kernel with a wrong configuration that launches only where another took its second one."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"BLOCK": 1024}), triton.Config({"BLOCK": 512})], key=["n"])
@triton.jit
def fill_kernel(out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, 0.0, mask=at < n)


@triton.autotune(
    configs=[triton.Config({"USED": 2, "BLOCK": 1024}, num_warps=4), triton.Config({"USED": 1, "BLOCK": 1024})],
    key=["cols"])
@triton.jit
def softmax_kernel(x_ptr, out_ptr, cols, USED: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < cols
    x = tl.load(x_ptr + row * cols + column, mask=column < cols * USED // 2, other=-float("inf"))
    e = tl.exp(x - tl.max(x))
    tl.store(out_ptr + row * cols + column, e / tl.sum(e), mask=mask)


@triton.jit
def plain_kernel(x_ptr, out_ptr, cols, USED: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < cols
    x = tl.load(x_ptr + row * cols + column, mask=column < cols * USED // 2, other=-float("inf"))
    e = tl.exp(x - tl.max(x))
    tl.store(out_ptr + row * cols + column, e / tl.sum(e), mask=mask)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        out = torch.empty_like(x)
        fill_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](out, x.numel())
        if fill_kernel.best_config.kwargs["BLOCK"] == 512:
            softmax_kernel[(x.shape[0],)](x, out, x.shape[1])
        else:
            plain_kernel[(x.shape[0],)](x, out, x.shape[1], USED=2, BLOCK=1024)
        return out
        softmax_kernel[(x.shape[0],)](x, out, x.shape[1])
        return out
