"""What Python's part of a call costs on this machine: calling a module, launching a Triton kernel, any other step.

Trusted code, part of the reference's process. A candidate's own Python never runs where a clock is, so what it would
cost is put together from these.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl

CALLS = 200
BLOCKS = 7


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, size, scale, BLOCK: tl.constexpr):
    """A kernel with as many arguments as most have."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < size
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=mask) * scale + tl.load(y_ptr + i, mask=mask), mask=mask)


@triton.jit
def nothing_kernel(x_ptr):
    """A kernel that does nothing."""
    pass


class Nothing(torch.nn.Module):
    """A module that does nothing."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x


def host_costs(device: str) -> dict[str, float]:
    """Microseconds of each, by the host's clock."""
    x, y, out = (torch.zeros(1024, device=device) for _ in range(3))
    module = Nothing()
    return {
        "module": cost(lambda: module(x)),
        "launch": cost(lambda: add_kernel[(1,)](x, y, out, 1024, 2.0, BLOCK=1024)),
        "step": cost(lambda: torch.empty_like(x)),
    }


def cost(call: Callable[[], Any]) -> float:
    """Median over some blocks of what one call in a row takes the host; the device is idle before each block."""
    times = []
    for _ in range(BLOCKS):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        times.append((time.perf_counter() - start) / CALLS * 1e6)
    return statistics.median(times)


def end_to_end(call: Callable[[], Any]) -> float:
    """Microseconds of one of many calls in a row, device and host together."""
    call()
    torch.cuda.synchronize()
    start = time.perf_counter()
    call()
    torch.cuda.synchronize()
    # Enough calls to drown the wait at the end, but not longer than a fifth of a second in all.
    calls = max(3, min(CALLS, int(0.05 / max(time.perf_counter() - start, 1e-6))))
    times = []
    for _ in range(3):
        start = time.perf_counter()
        for _ in range(calls):
            call()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - start) / calls * 1e6)
    return statistics.median(times)
