import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def halve_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    # One element far behind 2^31 bytes is wrong.
    tl.store(out_ptr + i, tl.where(i == 2000000123, 0.0, x * 0.5), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        out = torch.empty_like(x)
        n = x.numel()
        halve_kernel[(triton.cdiv(n, 4096),)](x, out, n, BLOCK=4096, num_warps=8)
        return out
