"""Host code that asks about the tensor."""

import torch
import triton
import triton.language as tl


@triton.jit
def add_one(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    value = tl.load(x + i, mask=m) + 1.0
    tl.store(y + i, value, mask=m)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        rows, columns = x.shape
        y = torch.empty((rows, columns), dtype=x.dtype, device=x.device)
        assert y.is_cuda == x.is_cuda
        add_one[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
        return y
