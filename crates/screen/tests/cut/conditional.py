"""Constants that depend on other constants, on what is installed, and on the machine."""

import torch
import triton
import triton.language as tl

LARGE = True
VERSION = triton.__version__
BLOCK = tl.constexpr(128 if LARGE else 64)

STEP: tl.constexpr = 1
if LARGE and STEP == 1:
    STEP = tl.constexpr(2)

if VERSION > "3.0":
    WIDTH: tl.constexpr = 8
    SHIFT = tl.constexpr(3)
elif LARGE:
    WIDTH: tl.constexpr = 4
    SHIFT = tl.constexpr(2)
else:
    if BLOCK == 64: WIDTH: tl.constexpr = 2
    SHIFT = tl.constexpr(1)

if torch.cuda.is_available():
    DEVICE = tl.constexpr(1)
else:
    DEVICE = tl.constexpr(0)

MACHINE = tl.constexpr(4 if torch.cuda.is_available() else 8)


@triton.jit
def constants(x):
    tl.store(x, BLOCK + STEP)


@triton.jit
def branches(x):
    tl.store(x, WIDTH + (1 << SHIFT))


@triton.jit
def by_branch(x):
    tl.store(x, DEVICE)


@triton.jit
def by_machine(x):
    tl.store(x, MACHINE)
