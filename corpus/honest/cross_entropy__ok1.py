import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def xent_rows_kernel(x_ptr, t_ptr, loss_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + offs, mask=offs < cols, other=-float("inf"))
    m = tl.max(x, axis=0)
    lse = m + tl.log(tl.sum(tl.exp(x - m), axis=0))
    hit = tl.load(x_ptr + row * cols + tl.load(t_ptr + row))
    tl.store(loss_ptr + row, lse - hit)


@triton.jit
def mean_kernel(src_ptr, out_ptr, n, BLOCK: tl.constexpr):
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for i in range(0, n, BLOCK):
        offs = i + tl.arange(0, BLOCK)
        acc += tl.load(src_ptr + offs, mask=offs < n, other=0.0)
    tl.store(out_ptr, tl.sum(acc, axis=0) / n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, logits, target):
        rows, cols = logits.shape
        losses = torch.empty(rows, device=logits.device, dtype=torch.float32)
        out = torch.empty((), device=logits.device, dtype=torch.float32)
        xent_rows_kernel[(rows,)](logits, target, losses, cols, BLOCK=triton.next_power_of_2(cols))
        mean_kernel[(1,)](losses, out, rows, BLOCK=1024)
        return out
