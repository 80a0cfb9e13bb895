import torch
import torch.nn as nn
import triton
import triton.language as tl

EXTRA = 0.0  # Share of the programs whose work is done twice.


@triton.jit
def scale_add_kernel(programs, x_ptr, b_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = (tl.program_id(0) % programs) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    x = tl.load(x_ptr + i, mask=inside)
    b = tl.load(b_ptr + i, mask=inside)
    tl.store(out_ptr + i, x * 1.5 + b, mask=inside)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, b):
        out = torch.empty_like(x)
        n = x.numel()
        programs = triton.cdiv(n, 4096)
        scale_add_kernel[(programs + int(programs * EXTRA),)](programs, x, b, out, n, BLOCK=4096, num_warps=8)
        return out
