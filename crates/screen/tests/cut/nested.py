import functools
import torch
import triton
import triton.language as tl

HAS_TRITON = True
if HAS_TRITON:
    SCALE = tl.constexpr(2.0)

    @triton.jit
    def conditional(x_ptr):
        """A kernel
        under an `if`."""
        tl.store(x_ptr, tl.load(x_ptr) * SCALE)


class ModelNew(torch.nn.Module):
    WIDTH = 16

    @staticmethod
    @triton.jit
    def method(x_ptr, B: tl.constexpr = WIDTH):
        tl.store(x_ptr + tl.arange(0, B), 0.0)

    def forward(self, x):
        LIMIT = tl.constexpr(7)

        @triton.jit
        def inner(x_ptr):
            tl.store(x_ptr,
                     tl.minimum(tl.load(x_ptr), LIMIT))

        inner[(1,)](x)
        return x


@functools.lru_cache
def make(width):
    import triton.language as lang

    @triton.jit
    def made(x_ptr):
        lang.store(x_ptr + lang.arange(0, width), 0.0)

    @triton.jit
    def fine(x_ptr):
        lang.store(x_ptr, 0.0)

    return made, fine
