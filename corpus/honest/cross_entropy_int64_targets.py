"""Targets are read as int64, as they come; the mean counts those that are not ignored."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def loss_kernel(x_ptr, target_ptr, loss_ptr, count_ptr, classes, ignored, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    target = tl.load(target_ptr + row)
    column = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * classes + column, mask=column < classes, other=-float("inf"))
    top = tl.max(x)
    lse = tl.log(tl.sum(tl.exp(x - top))) + top
    used = target != ignored
    chosen = tl.load(x_ptr + row * classes + target, mask=used, other=0.0)
    tl.store(loss_ptr + row, tl.where(used, lse - chosen, 0.0))
    tl.store(count_ptr + row, used.to(tl.int32))


@triton.jit
def mean_kernel(loss_ptr, count_ptr, out_ptr, rows, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    total = tl.sum(tl.load(loss_ptr + i, mask=i < rows, other=0.0))
    tl.store(out_ptr, total / tl.sum(tl.load(count_ptr + i, mask=i < rows, other=0)))


class ModelNew(nn.Module):
    def __init__(self, ignored):
        super().__init__()
        self.ignored = ignored

    def forward(self, logits, target):
        assert target.dtype == torch.int64
        logits = logits.contiguous()
        rows, classes = logits.shape
        loss, count = logits.new_empty(rows), torch.empty_like(target, dtype=torch.int32)
        out = logits.new_empty(())
        loss_kernel[(rows,)](
            logits, target, loss, count, classes, self.ignored, BLOCK=triton.next_power_of_2(classes), num_warps=8
        )
        mean_kernel[(1,)](loss, count, out, rows, BLOCK=triton.next_power_of_2(rows))
        return out
