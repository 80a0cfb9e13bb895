"""torch._int_mm, cuBLAS's int8 product; Triton scales the result."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x_ptr, scale_ptr, out_ptr, n, cols, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n).to(tl.float32)
    tl.store(out_ptr + i, x * tl.load(scale_ptr + i % cols, mask=i < n), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self, features_out):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(features_out))

    def forward(self, a, b):
        product = torch._int_mm(a, b.t())
        out = torch.empty(product.shape, dtype=torch.float32, device=a.device)
        n = out.numel()
        scale_kernel[(triton.cdiv(n, 1024),)](product, self.scale, out, n, out.shape[1], BLOCK=1024)
        return out
