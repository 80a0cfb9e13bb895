import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def norm_residual_kernel(x_ptr, r_ptr, w_ptr, b_ptr, out_ptr, total_ptr, eps, COLS: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, COLS)
    total = tl.load(x_ptr + row * COLS + i) + tl.load(r_ptr + row * COLS + i)
    tl.store(total_ptr + row * COLS + i, total)
    centred = total - tl.sum(total, axis=0) / COLS
    variance = tl.sum(centred * centred, axis=0) / COLS
    y = centred * tl.rsqrt(variance + eps) * tl.load(w_ptr + i) + tl.load(b_ptr + i)
    tl.store(out_ptr + row * COLS + i, y)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(2048)

    def forward(self, x, residual):
        out, total = torch.empty_like(x), torch.empty_like(x)
        rows, cols = x.shape
        weight, bias = self.norm.weight, self.norm.bias
        norm_residual_kernel[(rows,)](x, residual, weight, bias, out, total, self.norm.eps, COLS=cols)
        return out, total
