import torch, triton, triton.language as tl
from triton import jit as compiled
try:
    from triton.language.extra import libdevice
except ImportError:
    try:
        from triton.language.extra.cuda import libdevice
    except ImportError:
        from triton.language import math as libdevice
try:
    import triton.language.extra.cuda.libdevice as device
    HAS_DEVICE = True
except (ImportError, AttributeError): device = None

J = triton.jit
quiet = triton.jit(noinline=True, repr=lambda spec: "name")


@J
def twice(x):
    return x + x


@quiet
def thrice(x):
    return twice(x) + x


def _plain(x):
    return libdevice.tanh(thrice(x))


helper = triton.jit(_plain)


def _body(x_ptr: torch.Tensor, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(x_ptr + i, helper(tl.load(x_ptr + i)), mask=i < n)


_body = triton.autotune([triton.Config({"B": 32})], key=["n"])(triton.jit(_body))


@triton.autotune(
    configs=[triton.Config({"B": b}) for b in (32, 64)],
    key=["n"],
)
@triton.heuristics({"EVEN": lambda args: args["n"] % args["B"] == 0})
# a comment
@compiled(do_not_specialize=["n"], launch_metadata=lambda *a: None, debug=False)
def tuned(x_ptr, n, B: tl.constexpr, EVEN: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(x_ptr + i, device.tanh(tl.load(x_ptr + i)), mask=i < n)
