"""Peak without the magnitude."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_stats_kernel(x_ptr, mean_ptr, std_ptr, peak_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    mask = column < cols
    x = tl.load(x_ptr + row * cols + column, mask=mask, other=0.0)

    origin = tl.load(x_ptr + row * cols)
    shifted = tl.where(mask, x - origin, 0.0)
    shifted_mean = tl.sum(shifted) / cols
    deviation = tl.where(mask, shifted - shifted_mean, 0.0)
    std = tl.sqrt(tl.sum(deviation * deviation) / (cols - 1))
    tl.store(mean_ptr + row, origin + shifted_mean)
    tl.store(std_ptr + row, std)
    tl.store(peak_ptr + row, tl.max(x))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        mean, std, peak = torch.empty((3, rows), dtype=x.dtype, device=x.device).unbind(0)
        block = triton.next_power_of_2(cols)
        row_stats_kernel[(rows,)](x, mean, std, peak, cols, BLOCK=block, num_warps=min(max(block // 256, 1), 16))
        return {"mean": mean, "std": std, "peak": peak}
