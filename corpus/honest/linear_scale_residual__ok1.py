import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def linear_residual_kernel(
    x_ptr, w_ptr, b_ptr, out_ptr, M, D, gamma, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k0 in range(0, D, BK):
        rk = k0 + tl.arange(0, BK)
        x = tl.load(x_ptr + rm[:, None] * D + rk[None, :], mask=(rm[:, None] < M) & (rk[None, :] < D), other=0.0)
        w = tl.load(w_ptr + rn[None, :] * D + rk[:, None], mask=(rn[None, :] < D) & (rk[:, None] < D), other=0.0)
        acc = tl.dot(x, w, acc, input_precision="ieee")
    mask = (rm[:, None] < M) & (rn[None, :] < D)
    b = tl.load(b_ptr + rn, mask=rn < D, other=0.0)
    res = tl.load(x_ptr + rm[:, None] * D + rn[None, :], mask=mask, other=0.0)
    tl.store(out_ptr + rm[:, None] * D + rn[None, :], res + gamma * (acc + b[None, :]), mask=mask)


class ModelNew(nn.Module):
    def __init__(self, dim, gamma):
        super().__init__()
        self.gamma = gamma
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        M, D = x.shape
        out = torch.empty_like(x)
        BM = BN = 64 if M >= 1024 else 16
        linear_residual_kernel[(triton.cdiv(M, BM), triton.cdiv(D, BN))](
            x, self.proj.weight, self.proj.bias, out, M, D, self.gamma, BM=BM, BN=BN, BK=32
        )
        return out
