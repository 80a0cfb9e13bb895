"""K in parts, each to its own slice of a workspace; a second kernel adds them in order."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def part_kernel(a_ptr, b_ptr, work_ptr, M, N, K, am, ak, bk, bn, CHUNK, BLOCK: tl.constexpr, BLOCK_K: tl.constexpr):
    part = tl.program_id(2)
    m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    last = tl.minimum(K, (part + 1) * CHUNK)
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for start in range(part * CHUNK, last, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        a = tl.load(a_ptr + m[:, None] * am + k[None, :] * ak, mask=(m[:, None] < M) & (k[None, :] < last), other=0.0)
        b = tl.load(b_ptr + k[:, None] * bk + n[None, :] * bn, mask=(k[:, None] < last) & (n[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
    offset = part * M * N + m[:, None] * N + n[None, :]
    tl.store(work_ptr + offset, acc, mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def add_parts_kernel(work_ptr, out_ptr, size, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.load(work_ptr + i, mask=i < size)
    for part in tl.static_range(1, PARTS):
        total += tl.load(work_ptr + part * size + i, mask=i < size)
    tl.store(out_ptr + i, total, mask=i < size)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, a, b):
        (M, K), N = a.shape, b.shape[1]
        parts = 3 if K >= 96 else 1
        work = torch.empty((parts, M, N), dtype=torch.float32, device=a.device)
        part_kernel[(triton.cdiv(M, 32), triton.cdiv(N, 32), parts)](
            a, b, work, M, N, K, *a.stride(), *b.stride(), triton.cdiv(K, parts), BLOCK=32, BLOCK_K=32
        )
        if parts == 1:
            return work[0]
        c = a.new_empty((M, N))
        add_parts_kernel[(triton.cdiv(M * N, 1024),)](work, c, M * N, PARTS=parts, BLOCK=1024)
        return c
