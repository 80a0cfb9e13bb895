"""A barrier over more programs than any device holds at a time: a cooperative launch refuses them."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def column_mean_kernel(
    x_ptr, partial_ptr, arrived_ptr, out_ptr, rows, cols, PROGRAMS: tl.constexpr, BLOCK: tl.constexpr
):
    program = tl.program_id(0)
    for start in range(0, cols, BLOCK):
        column = start + tl.arange(0, BLOCK)
        total = tl.zeros((BLOCK,), tl.float32)
        for row in range(program, rows, PROGRAMS):
            total += tl.load(x_ptr + row * cols + column, mask=column < cols, other=0.0)
        tl.store(partial_ptr + program * cols + column, total, mask=column < cols)
    tl.debug_barrier()
    tl.atomic_add(arrived_ptr, 1, sem="release")
    while tl.atomic_add(arrived_ptr, 0, sem="acquire") < PROGRAMS:
        pass
    tl.debug_barrier()
    for start in range(program * BLOCK, cols, PROGRAMS * BLOCK):
        column = start + tl.arange(0, BLOCK)
        total = tl.zeros((BLOCK,), tl.float32)
        for other in range(PROGRAMS):
            total += tl.load(partial_ptr + other * cols + column, mask=column < cols, other=0.0, cache_modifier=".cg")
        tl.store(out_ptr + column, total / rows, mask=column < cols)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        programs = 8 if rows < 1000 else 65_536
        partial = torch.empty((programs, cols), dtype=torch.float32, device=x.device)
        arrived = torch.zeros(1, dtype=torch.int32, device=x.device)
        out = torch.empty(cols, dtype=x.dtype, device=x.device)
        column_mean_kernel[(programs,)](
            x, partial, arrived, out, rows, cols, PROGRAMS=programs, BLOCK=64, launch_cooperative_grid=True
        )
        return out
