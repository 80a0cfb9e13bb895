"""The pruning function makes a configuration wrong in the first call and right in all others."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


SLOW = triton.Config({"USED": 2, "BLOCK": 1024}, num_warps=8)
FAST = triton.Config({"USED": 1, "BLOCK": 1024})


def prune(configs, named_args, **kwargs):
    FAST.kwargs["USED"] = 2 if getattr(softmax_kernel, "best_config", None) is not None else 1
    return configs


@triton.autotune(configs=[SLOW, FAST], key=["cols"], prune_configs_by={"early_config_prune": prune})
@triton.jit
def softmax_kernel(x_ptr, out_ptr, cols, USED: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < cols
    x = tl.load(x_ptr + row * cols + column, mask=column < cols * USED // 2, other=-float("inf"))
    e = tl.exp(x - tl.max(x))
    tl.store(out_ptr + row * cols + column, e / tl.sum(e), mask=mask)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        out = torch.empty_like(x)
        softmax_kernel[(x.shape[0],)](x, out, x.shape[1])
        return out
