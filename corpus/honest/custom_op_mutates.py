"""A `torch.library.custom_op` that writes into its argument, called through torch.ops."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    mask = column < cols
    x = tl.load(x_ptr + row * cols + column, mask=mask, other=-float("inf"))
    numerator = tl.exp(x - tl.max(x))
    tl.store(out_ptr + row * cols + column, numerator / tl.sum(numerator), mask=mask)


@torch.library.custom_op("tilewright_corpus::softmax_rows_out", mutates_args={"out"})
def softmax_rows_out(x: torch.Tensor, out: torch.Tensor) -> None:
    rows, cols = x.shape
    softmax_kernel[(rows,)](x, out, cols, BLOCK=triton.next_power_of_2(cols))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        torch.ops.tilewright_corpus.softmax_rows_out(x, out)
        return out
