from triton import *
from triton.language import *

try:
    import torch
    import triton
    HAS_TRITON = True
except ImportError:
    triton = None
    HAS_TRITON = False

LIMIT = constexpr(3)


@jit
def kernel(x_ptr, B: constexpr):
    i = arange(0, B)
    store(x_ptr + i, minimum(load(x_ptr + i), LIMIT))


@triton.jit
def other(x_ptr):
    store(x_ptr, 0.0)
