"""Views of every kind over the input: the kernel is told their strides."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_sum_kernel(x_ptr, out_ptr, cols, row_stride, col_stride, out_stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, cols, BLOCK):
        column = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * row_stride + column * col_stride, mask=column < cols, other=0.0)
    tl.store(out_ptr + row * out_stride, tl.sum(total))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        rows, cols = x.shape
        view = torch.as_strided(x, (cols, rows), (x.stride(1), x.stride(0))).unsqueeze(0).transpose(1, 2)[0]
        out = torch.empty(rows, 2, dtype=x.dtype, device=x.device).select(1, 1)
        row_sum_kernel[(rows,)](view, out, cols, view.stride(0), view.stride(1), out.stride(0), BLOCK=256)
        return out.view(-1) if out.is_contiguous() else out
