import triton
import triton.language as tl
import torch

LIMIT = 1024


@triton.constexpr_function
def warps(n: int, limit: int = LIMIT) -> int:
    """How many warps."""
    if n >= limit:
        return 8
    steps = 0
    while n > 1:
        n //= 2
        steps += 1
    return max(1, min(steps, 4))


@triton.constexpr_function
def reads_clock(n):
    import time
    return time.time()


@triton.jit
def kernel(x_ptr, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(x_ptr + i, warps(B))


@triton.jit
def bad(x_ptr, B: tl.constexpr):
    tl.store(x_ptr, reads_clock(B))
