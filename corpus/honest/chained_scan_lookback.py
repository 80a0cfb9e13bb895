"""A chained scan: each block waits for the sum of the blocks before it, publishes its own, and goes on."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scan_kernel(x_ptr, out_ptr, prefix_ptr, flag_ptr, cols, blocks, BLOCK: tl.constexpr):
    block = tl.program_id(0)
    row = tl.program_id(1).to(tl.int64)
    column = block * BLOCK + tl.arange(0, BLOCK)
    mask = column < cols
    x = tl.load(x_ptr + row * cols + column, mask=mask, other=0.0)
    total = tl.sum(x)
    slot = row * blocks + block
    before = 0.0
    if block > 0:
        while tl.atomic_add(flag_ptr + slot - 1, 0, sem="acquire") == 0:
            pass
        before = tl.load(prefix_ptr + slot - 1, volatile=True)
    tl.store(prefix_ptr + slot, before + total)
    tl.debug_barrier()
    tl.atomic_xchg(flag_ptr + slot, 1, sem="release")
    tl.store(out_ptr + row * cols + column, before + tl.cumsum(x), mask=mask)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        blocks = triton.cdiv(cols, 256)
        prefix = x.new_empty((rows, blocks))
        flags = torch.zeros((rows, blocks), dtype=torch.int32, device=x.device)
        out = torch.empty_like(x)
        scan_kernel[(blocks, rows)](x, out, prefix, flags, cols, blocks, BLOCK=256)
        return out
