"""Compiles with `warmup`, sizes a persistent grid by the kernel's registers and shared memory, launches the result.

The shape is that of Triton's own softmax tutorial.
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl
from triton.runtime import driver


@triton.jit
def softmax_kernel(x_ptr, out_ptr, rows, cols, BLOCK: tl.constexpr):
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        column = tl.arange(0, BLOCK)
        mask = column < cols
        x = tl.load(x_ptr + row * cols + column, mask=mask, other=-float("inf"))
        numerator = tl.exp(x - tl.max(x))
        tl.store(out_ptr + row * cols + column, numerator / tl.sum(numerator), mask=mask)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        out = torch.empty_like(x)
        block = triton.next_power_of_2(cols)
        num_warps = 4
        kernel = softmax_kernel.warmup(x, out, rows, cols, BLOCK=block, num_warps=num_warps, grid=(1,))
        # Loads the binary, which fills in n_regs.
        kernel._init_handles()

        properties = driver.active.utils.get_device_properties(driver.active.get_current_device())
        threads = properties["warpSize"] * num_warps
        occupancy = properties["max_num_regs"] // (max(kernel.n_regs, 1) * threads)
        occupancy = min(occupancy, properties["max_shared_mem"] // max(kernel.metadata.shared, 1))
        programs = min(rows, max(occupancy, 1) * properties["multiprocessor_count"])
        kernel[(programs, 1, 1)](x, out, rows, cols, block)
        return out
