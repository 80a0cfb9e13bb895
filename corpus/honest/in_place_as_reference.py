"""Inputs are updated where they lie, through views, and the first is returned."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def adamw_kernel(w_ptr, g_ptr, m_ptr, v_ptr, size, rate, decay, beta1, beta2, eps, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < size
    g = tl.load(g_ptr + i, mask=mask)
    m = beta1 * tl.load(m_ptr + i, mask=mask) + (1.0 - beta1) * g
    v = beta2 * tl.load(v_ptr + i, mask=mask) + (1.0 - beta2) * g * g
    w = tl.load(w_ptr + i, mask=mask) * (1.0 - rate * decay)
    tl.store(m_ptr + i, m, mask=mask)
    tl.store(v_ptr + i, v, mask=mask)
    tl.store(w_ptr + i, w - rate * m / (tl.sqrt(v) + eps), mask=mask)


class ModelNew(nn.Module):
    def __init__(self, rate, decay):
        super().__init__()
        self.options = dict(rate=rate, decay=decay, beta1=0.9, beta2=0.99, eps=1e-6)

    @torch.no_grad()
    def forward(self, weight, gradient, moment, square):
        flat = [t.detach().view(-1) for t in (weight, gradient, moment, square)]
        size = weight.numel()
        adamw_kernel[(triton.cdiv(size, 1024),)](*flat, size, **self.options, BLOCK=1024)
        return weight
