import os
import math
import numpy as np
import torch
import triton
import triton.language as tl

FAST = os.environ.get("FAST", "0") == "1"
SIZES = [1, 2, 3]
TABLE = {"a": 1}
STEP = 1
STEP = 2
EPS = torch.finfo(torch.float32).eps
count = 0
for LAST in range(3):
    pass


def bump():
    global count
    count += 1


class Config:
    BLOCK = 32


def host_helper(x):
    return x * 2


def below(fn):
    return fn


@triton.jit
def reads_environment(x_ptr):
    if FAST:
        tl.store(x_ptr, 0.0)


@triton.jit
def reads_list(x_ptr):
    tl.store(x_ptr, SIZES[0])


@triton.jit
def reads_dict(x_ptr):
    tl.store(x_ptr, TABLE["a"])


@triton.jit
def reads_reassigned(x_ptr):
    tl.store(x_ptr, STEP)


@triton.jit
def reads_computed(x_ptr):
    tl.store(x_ptr, EPS)


@triton.jit
def reads_counter(x_ptr):
    tl.store(x_ptr, count)


@triton.jit
def reads_loop(x_ptr):
    tl.store(x_ptr, LAST)


@triton.jit
def reads_class(x_ptr):
    tl.store(x_ptr, Config.BLOCK)


@triton.jit
def reads_numpy(x_ptr):
    tl.store(x_ptr, np.pi)


@triton.jit
def reads_torch(x_ptr):
    tl.store(x_ptr, 0.0, torch.float32)


@triton.jit
def calls_host(x_ptr):
    tl.store(x_ptr, host_helper(1))


@triton.jit
def calls_uncut(x_ptr):
    calls_host(x_ptr)


@triton.jit
@below
def swapped(x_ptr):
    tl.store(x_ptr, 0.0)


@triton.jit(noinline=FAST)
def maybe_inline(x_ptr):
    tl.store(x_ptr, 0.0)


@triton.jit
def default_computed(x_ptr, N: tl.constexpr = len(SIZES)):
    tl.store(x_ptr, 0.0)


anonymous = triton.jit(lambda x_ptr: tl.store(x_ptr, 0.0))


def one():
    @triton.jit
    def same(x_ptr):
        tl.store(x_ptr, 1.0)

    return same


def two():
    @triton.jit
    def same(x_ptr):
        tl.store(x_ptr, 2.0)

    return same


@triton.jit
def fine(x_ptr):
    tl.store(x_ptr, math.pi)
