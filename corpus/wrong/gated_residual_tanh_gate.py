"""tanh instead of sigmoid on the gate."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def gated_residual_kernel(x_ptr, hidden_ptr, gate_ptr, scale_ptr, out_ptr, width, BLOCK: tl.constexpr):
    token = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = column < width
    offset = token * width + column

    x = tl.load(x_ptr + offset, mask=mask, other=0.0).to(tl.float32)
    hidden = tl.load(hidden_ptr + offset, mask=mask, other=0.0).to(tl.float32)
    gate = tl.load(gate_ptr + offset, mask=mask, other=0.0).to(tl.float32)
    scale = tl.load(scale_ptr + column, mask=mask, other=0.0).to(tl.float32)

    out = x + scale * (2.0 * tl.sigmoid(2.0 * gate) - 1.0) * hidden
    tl.store(out_ptr + offset, out.to(out_ptr.dtype.element_ty), mask=mask)


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(width, dtype=torch.bfloat16) + 0.5)

    def forward(self, x, hidden, gate):
        x, hidden, gate = x.contiguous(), hidden.contiguous(), gate.contiguous()
        tokens, width = x.shape
        out = torch.empty_like(x)
        block = 1024
        grid = (tokens, triton.cdiv(width, block))
        gated_residual_kernel[grid](x, hidden, gate, self.scale, out, width, BLOCK=block)
        return out
