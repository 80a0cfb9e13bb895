"""Split-K with a semaphore for each tile: parts add to the output in order, so the result is deterministic."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def matmul_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    turn_ptr,
    M,
    N,
    K,
    am,
    ak,
    bk,
    bn,
    PARTS: tl.constexpr,
    BLOCK: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    part = tl.program_id(2)
    m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for start in range(part * BLOCK_K, K, PARTS * BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        a = tl.load(a_ptr + m[:, None] * am + k[None, :] * ak, mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        b = tl.load(b_ptr + k[:, None] * bk + n[None, :] * bn, mask=(k[:, None] < K) & (n[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
    tile = tl.program_id(0) * tl.num_programs(1) + tl.program_id(1)
    c = c_ptr + m[:, None] * N + n[None, :]
    mask = (m[:, None] < M) & (n[None, :] < N)
    while tl.atomic_add(turn_ptr + tile, 0) != part:
        pass
    if part > 0:
        acc += tl.load(c, mask=mask, other=0.0, cache_modifier=".cg")
    tl.store(c, acc, mask=mask)
    tl.debug_barrier()
    tl.atomic_add(turn_ptr + tile, 1)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, a, b):
        (M, K), N = a.shape, b.shape[1]
        grid = (triton.cdiv(M, 32), triton.cdiv(N, 32), 3)
        turn = torch.zeros(grid[:2], dtype=torch.int32, device=a.device)
        c = a.new_empty((M, N))
        matmul_kernel[grid](a, b, c, turn, M, N, K, *a.stride(), *b.stride(), PARTS=3, BLOCK=32, BLOCK_K=32)
        return c
