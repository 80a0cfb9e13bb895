import functools

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def persistent_mm(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    sam,
    sak,
    sbk,
    sbn,
    n_prog,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    GROUP: tl.constexpr,
):
    tiles_m = tl.cdiv(M, BM)
    tiles_n = tl.cdiv(N, BN)
    for tile in range(tl.program_id(0), tiles_m * tiles_n, n_prog):
        per_group = GROUP * tiles_n
        first_m = (tile // per_group) * GROUP
        height = tl.minimum(tiles_m - first_m, GROUP)
        tm = first_m + (tile % per_group) % height
        tn = (tile % per_group) // height
        rm = tm * BM + tl.arange(0, BM)
        rn = tn * BN + tl.arange(0, BN)
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for k0 in range(0, K, BK):
            rk = k0 + tl.arange(0, BK)
            a = tl.load(
                a_ptr + rm[:, None] * sam + rk[None, :] * sak, mask=(rm[:, None] < M) & (rk[None, :] < K), other=0.0
            )
            b = tl.load(
                b_ptr + rk[:, None] * sbk + rn[None, :] * sbn, mask=(rk[:, None] < K) & (rn[None, :] < N), other=0.0
            )
            acc = tl.dot(a, b, acc)
        tl.store(c_ptr + rm[:, None] * N + rn[None, :], acc.to(tl.float16), mask=(rm[:, None] < M) & (rn[None, :] < N))


@functools.cache
def _program_count(index):
    if index is None:
        return 3
    return torch.cuda.get_device_properties(index).multi_processor_count


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, a, b):
        (M, K), N = a.shape, b.shape[1]
        c = torch.empty(M, N, dtype=a.dtype, device=a.device)
        n_prog = _program_count(a.device.index if a.is_cuda else None)
        big = M * N > 1 << 20
        persistent_mm[(n_prog,)](
            a,
            b,
            c,
            M,
            N,
            K,
            a.stride(0),
            a.stride(1),
            b.stride(0),
            b.stride(1),
            n_prog,
            BM=128 if big else 16,
            BN=128 if big else 32,
            BK=32,
            GROUP=8,
        )
        return c
