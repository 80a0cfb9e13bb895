"""Questions about tensors and dtypes that compute nothing."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def affine_relu_kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, size, cols, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = i < size
    column = i % cols
    x = tl.load(x_ptr + i, mask=mask, other=0.0)
    weight = tl.load(weight_ptr + column, mask=mask, other=0.0)
    bias = tl.load(bias_ptr + column, mask=mask, other=0.0)
    tl.store(out_ptr + i, tl.maximum(x * weight + bias, 0.0), mask=mask)


class ModelNew(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(cols))
        self.bias = nn.Parameter(torch.zeros(cols))

    def forward(self, x):
        dtype = torch.promote_types(x.dtype, self.weight.dtype)
        assert dtype == torch.result_type(x, self.weight)
        assert torch.broadcast_shapes(x.shape, self.weight.shape) == x.shape
        vector = max(1, 16 // x.element_size())
        block = 128 * vector if torch.finfo(dtype).bits <= 32 else 128
        assert torch.iinfo(torch.int32).max >= x.numel() and torch.get_default_dtype() is not None
        x = x.to(dtype).contiguous()
        out = torch.empty(x.size(), dtype=dtype, device=x.device, memory_format=torch.contiguous_format)
        affine_relu_kernel[(triton.cdiv(x.numel(), block),)](
            x, self.weight, self.bias, out, x.numel(), x.shape[-1], BLOCK=block
        )
        return out
