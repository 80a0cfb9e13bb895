import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def groupnorm_kernel(x_ptr, w_ptr, b_ptr, out_ptr, groups, cpg, hw, eps, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    g = pid % groups
    size = cpg * hw
    base = pid.to(tl.int64) * size
    s = tl.zeros((BLOCK,), dtype=tl.float32)
    for i in range(0, size, BLOCK):
        offs = i + tl.arange(0, BLOCK)
        s += tl.load(x_ptr + base + offs, mask=offs < size, other=0.0)
    mean = tl.sum(s, axis=0) / size
    v = tl.zeros((BLOCK,), dtype=tl.float32)
    for i in range(0, size, BLOCK):
        offs = i + tl.arange(0, BLOCK)
        d = tl.where(offs < size, tl.load(x_ptr + base + offs, mask=offs < size, other=0.0) - mean, 0.0)
        v += d * d
    inv = tl.rsqrt(tl.sum(v, axis=0) / size + eps)
    for i in range(0, size, BLOCK):
        offs = i + tl.arange(0, BLOCK)
        mask = offs < size
        c = g * cpg + offs // hw
        x = tl.load(x_ptr + base + offs, mask=mask)
        w = tl.load(w_ptr + c, mask=mask)
        b = tl.load(b_ptr + c, mask=mask)
        tl.store(out_ptr + base + offs, (x - mean) * inv * w + b, mask=mask)


class ModelNew(nn.Module):
    def __init__(self, groups, channels, eps):
        super().__init__()
        self.groups, self.eps = groups, eps
        self.gn = nn.GroupNorm(groups, channels, eps=eps)

    def forward(self, x):
        B, C, H, W = x.shape
        out = torch.empty_like(x)
        groupnorm_kernel[(B * self.groups,)](
            x,
            self.gn.weight,
            self.gn.bias,
            out,
            self.groups,
            C // self.groups,
            H * W,
            self.eps,
            BLOCK=1024 if H * W > 1024 else 64,
        )
        return out
