"""Meta-parameters by heuristics."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.heuristics(
    {
        "BLOCK": lambda args: min(1024, triton.next_power_of_2(args["size"])),
        "EVEN": lambda args: args["size"] % min(1024, triton.next_power_of_2(args["size"])) == 0,
    }
)
@triton.jit
def affine_relu_kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, size, cols, EVEN: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < size
    if EVEN:
        x = tl.load(x_ptr + i)
    else:
        x = tl.load(x_ptr + i, mask=mask, other=0.0)
    y = x * tl.load(weight_ptr + i % cols, mask=mask) + tl.load(bias_ptr + i % cols, mask=mask)
    tl.store(out_ptr + i, tl.maximum(y, 0.0), mask=mask)


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(cols))
        self.bias = nn.Parameter(torch.zeros(cols))

    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        affine_relu_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](
            x, self.weight, self.bias, out, x.numel(), x.shape[-1]
        )
        return out
