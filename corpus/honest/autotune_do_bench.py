"""An autotuner that measures by the file's own do_bench."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.autotune(
    configs=[triton.Config({"USED": 2, "BLOCK": 1024}, num_warps=4), triton.Config({"USED": 2, "BLOCK": 1024}, num_warps=8)],
    key=["cols"], do_bench=lambda kernel_call, quantiles: triton.testing.do_bench(kernel_call, warmup=1, rep=5, quantiles=quantiles))
@triton.jit
def softmax_kernel(x_ptr, out_ptr, cols, USED: tl.constexpr, BLOCK: tl.constexpr):
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
        softmax_kernel[(x.shape[0],)](x, out, x.shape[1])
        return out
