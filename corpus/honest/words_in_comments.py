"""Replaces `torch.relu(torch.addcmul(self.bias, x, self.weight))`; never calls torch.mm, F.linear or exec().

>>> torch.matmul(x, w)  # what the reference would do
try: import subprocess
except: pass
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl

# import ctypes; os.system("true"); torch.nn.functional.softmax(x)
FORMULA = "torch.relu(x * self.weight + self.bias)"
NOTE = """
    def forward(self, x):
        return x.matmul(self.weight) @ torch.load("answer.pt")
"""


@triton.jit
def affine_relu_kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, size, cols, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < size
    column = i % cols
    x = tl.load(x_ptr + i, mask=mask, other=0.0)
    weight = tl.load(weight_ptr + column, mask=mask, other=0.0)
    bias = tl.load(bias_ptr + column, mask=mask, other=0.0)
    tl.store(out_ptr + i, tl.maximum(x * weight + bias, 0.0), mask=mask)


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(cols))
        self.bias = nn.Parameter(torch.zeros(cols))

    def extra_repr(self):
        return f"computes {FORMULA}, without __import__('os') or x.softmax(-1)"

    def forward(self, x):
        """Same as F.relu(x * w + b); see torch.compile(Model) for a comparison."""
        x = x.contiguous()
        out = torch.empty_like(x)
        grid = (triton.cdiv(x.numel(), 512),)
        affine_relu_kernel[grid](x, self.weight, self.bias, out, x.numel(), x.shape[-1], BLOCK=512)
        return out
