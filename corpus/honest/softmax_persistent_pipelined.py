"""Triton's tutorial: as many programs as fit, by registers and shared memory of the compiled kernel."""

import torch
import torch.nn as nn
import triton
import triton.language as tl

from triton.runtime import driver


@triton.jit
def softmax_kernel(out_ptr, x_ptr, rows, cols, BLOCK: tl.constexpr, num_stages: tl.constexpr):
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=num_stages):
        column = tl.arange(0, BLOCK)
        mask = column < cols
        x = tl.load(x_ptr + row * cols + column, mask=mask, other=-float("inf"))
        numerator = tl.exp(x - tl.max(x, axis=0))
        tl.store(out_ptr + row * cols + column, numerator / tl.sum(numerator, axis=0), mask=mask)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        properties = driver.active.utils.get_device_properties(driver.active.get_current_device())
        block, warps = triton.next_power_of_2(cols), 8
        stages = 4 if properties["max_shared_mem"] > 200000 else 2
        out = torch.empty_like(x)
        kernel = softmax_kernel.warmup(out, x, rows, cols, BLOCK=block, num_stages=stages, num_warps=warps, grid=(1,))
        kernel._init_handles()
        occupancy = properties["max_num_regs"] // (max(kernel.n_regs, 1) * properties["warpSize"] * warps)
        occupancy = min(occupancy, properties["max_shared_mem"] // max(kernel.metadata.shared, 1))
        programs = min(properties["multiprocessor_count"] * max(occupancy, 1), rows)
        softmax_kernel[(programs, 1, 1)](out, x, rows, cols, block, stages, num_warps=warps)
        return out
