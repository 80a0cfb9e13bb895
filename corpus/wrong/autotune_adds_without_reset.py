"""An autotuned kernel adds to its output, which nothing resets while Triton measures."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"B": 128}), triton.Config({"B": 256})], key=["n"])
@triton.jit
def k(x_ptr, y_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.atomic_add(y_ptr, tl.sum(x) / n)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.zeros((), device=x.device)
        k[lambda m: (triton.cdiv(x.numel(), m["B"]),)](x, y, x.numel())
        return y
