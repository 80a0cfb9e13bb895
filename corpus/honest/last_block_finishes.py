"""One launch: every program adds one to a counter, and the last of a row finishes it."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_sum_kernel(x_ptr, partial_ptr, counter_ptr, out_ptr, cols, blocks, SLOTS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    block = tl.program_id(1)
    column = block * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + column, mask=column < cols, other=0.0)
    tl.store(partial_ptr + row * blocks + block, tl.sum(x))
    tl.debug_barrier()
    arrived = tl.atomic_add(counter_ptr + row, 1, sem="acq_rel", scope="gpu")
    if arrived == blocks - 1:
        slot = tl.arange(0, SLOTS)
        partial = tl.load(partial_ptr + row * blocks + slot, mask=slot < blocks, other=0.0, volatile=True)
        tl.store(out_ptr + row, tl.sum(partial))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        blocks = triton.cdiv(cols, 256)
        partial = torch.empty((rows, blocks), dtype=torch.float32, device=x.device)
        counter = torch.zeros(rows, dtype=torch.int32, device=x.device)
        out = x.new_empty(rows)
        row_sum_kernel[(rows, blocks)](
            x, partial, counter, out, cols, blocks, SLOTS=triton.next_power_of_2(blocks), BLOCK=256
        )
        return out
