"""An autotuned kernel works in place, and nothing restores the values while Triton measures."""

import torch.nn as nn
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"B": 128}), triton.Config({"B": 256})], key=["n"])
@triton.jit
def k(x_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(x_ptr + i, tl.load(x_ptr + i, mask=i < n) * 2, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        k[lambda m: (triton.cdiv(x.numel(), m["B"]),)](x, x.numel())
        return x
