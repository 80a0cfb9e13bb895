"""A persistent kernel: as many programs as the device holds."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def row_sum_kernel(x_ptr, out_ptr, rows, cols, BLOCK: tl.constexpr):
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        total = tl.zeros((BLOCK,), dtype=tl.float32)
        for start in range(0, cols, BLOCK):
            column = start + tl.arange(0, BLOCK)
            total += tl.load(x_ptr + row * cols + column, mask=column < cols, other=0.0)
        tl.store(out_ptr + row, tl.sum(total))


def programs(device):
    index = device.index if device.index is not None else torch.cuda.current_device()
    properties = triton.runtime.driver.active.utils.get_device_properties(index)
    count = torch.cuda.get_device_properties(index).multi_processor_count
    assert count == properties["multiprocessor_count"]
    return count * (2 if torch.cuda.get_device_capability(index)[0] >= 8 else 1)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        x = x.contiguous()
        rows, cols = x.shape
        out = x.new_empty(rows)
        row_sum_kernel[(min(rows, programs(x.device)),)](x, out, rows, cols, BLOCK=256)
        return out
