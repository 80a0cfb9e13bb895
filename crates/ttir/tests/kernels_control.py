"""Kernels over control flow: loops, branches, calls, tuples, program numbers. See `kernels.py`."""

import triton
import triton.language as tl
from kernels import case


@case("*i32!")
@triton.jit
def programs(out):
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(axis=2)
    n, m, k = tl.num_programs(0), tl.num_programs(1), tl.num_programs(axis=2)
    tl.store(out + (z * m + y) * n + x, x + 10 * y + 100 * z + 1000 * k)


@case("*fp32! i32 i32", MODE=0, name="constexpr_branch_0")
@case("*fp32! i32 i32", MODE=1, name="constexpr_branch_1")
@triton.jit
def constexpr_branches(x, n, m, MODE: tl.constexpr):
    o = tl.arange(0, 32)
    v = tl.load(x + o)
    if MODE == 0:
        v = v + n
    elif MODE == 1 and m is not None:
        v = v * m
    else:
        v = -v
    for i in tl.static_range(0, 4 - MODE):
        v += tl.load(x + i) if i % 2 == 0 else 1.0
    tl.store(x + o, v)


@case("*fp32! i32")
@triton.jit
def while_loops(x, n):
    i = 0
    a = 1.0
    b = tl.zeros([16], tl.float32)
    while i < n and a < 100.0:
        j = i
        while j > 0:
            a += tl.load(x + j)
            j = j // 2
        b += a
        i += 1
    tl.store(x + tl.arange(0, 16), b)
    tl.store(x + 16, i)


@case("*fp32! i32 i32")
@triton.jit
def loop_bounds(x, n, m):
    a = 0.0
    for i in range(n, m):
        a += i
    for i in range(m, n, -3):
        a += tl.load(x + i)
    for i in range(0, 8, 2):
        a *= i
    for i in range(n.to(tl.int64), 100):
        a += i.to(tl.float32)
    for _ in range(0):
        a = -a
    for i in tl.range(5):
        a += i
    tl.store(x, a)


@case("*fp32! i32")
@triton.jit
def loop_attributes(x, n):
    o = tl.arange(0, 32)
    a = tl.zeros([32], tl.float32)
    for i in tl.range(0, n, num_stages=4):
        a += tl.load(x + o + i * 32)
    for i in tl.range(0, n, loop_unroll_factor=4):
        a += tl.load(x + o + i * 32)
    for i in tl.range(n, flatten=True):
        a += i
    for i in tl.range(0, n, 2, disallow_acc_multi_buffer=True):
        a += i
    for i in tl.range(0, n, warp_specialize=True, num_stages=2):
        a += tl.load(x + o + i)
    for i in tl.range(0, n, disable_licm=True):
        a += n * 2 + i
    tl.store(x + o, a)


@case("*fp32! u32 i64")
@triton.jit
def unsigned_loop(x, n, m):
    a = 0.0
    for i in range(0, n):
        a += i
    for i in range(0, m, 7):
        a -= i
    tl.store(x, a)


@case("*fp32! *i32! i32")
@triton.jit
def branches(x, flags, n):
    o = tl.arange(0, 16)
    v = tl.load(x + o)
    f = tl.load(flags)
    if f > 0:
        v += 1
        if f > 10:
            v *= 2
            if f > 100:
                v = -v
        else:
            v -= 3
    elif f == 0:
        tl.store(flags, 1)
    else:
        v = tl.zeros([16], tl.float32)
    w = v if n > 3 else v + 1
    k = n if f > 2 else f
    if (n > 1 and f < 2) or not (k > 3):
        w += k
    tl.store(x + o, w)


@case("*fp32! i32 i32")
@triton.jit
def early_returns(x, n, m):
    pid = tl.program_id(0)
    if pid >= n:
        return
    if pid == m:
        tl.store(x + pid, -1.0)
        return
    o = tl.arange(0, 16)
    if m > 10:
        tl.store(x + o, 1.0)
        return
    tl.store(x + o, tl.load(x + o) * 2)


@triton.jit(noinline=True)
def _scale(x, factor):
    return x * factor


@triton.jit(noinline=True)
def _pointer_sum(p, n, BLOCK: tl.constexpr):
    total = 0.0
    for i in range(n):
        total += tl.sum(tl.load(p + i * BLOCK + tl.arange(0, BLOCK)), 0)
    return total


@triton.jit(noinline=True)
def _nothing_back(p, v):
    tl.store(p, v)


@triton.jit(noinline=True)
def _three(a, b):
    return a + b, a - b, _scale(a, b)


@case("*fp32! fp32 i32")
@triton.jit
def calls_of_functions(x, factor, n):
    s = _pointer_sum(x, n, 32)
    a, b, c = _three(s, factor)
    for i in range(n):
        a = _scale(a, factor + i)
    if n > 2:
        _nothing_back(x + 1, b)
    _nothing_back(x, a + c)


@triton.jit
def _clipped(x, low):
    if low is not None:
        x = tl.maximum(x, low)
    return x


@triton.jit
def _apply(fn: tl.constexpr, x, y=None):
    return fn(x, y)


@case("*fp32! *fp32!")
@triton.jit
def functions_as_arguments(x, out):
    o = tl.arange(0, 32)
    v = tl.load(x + o)
    tl.store(out + o, _apply(_clipped, v, 0.5) + _apply(_clipped, v))


@triton.jit
def _sum_and_count(values):
    total = values[0]
    for i in tl.static_range(1, len(values)):
        total += values[i]
    return total, len(values)


@case("*fp32! *fp32! *i32! i32")
@triton.jit
def tuples_of_values(x, y, z, n):
    pointers = (x, y)
    o = tl.arange(0, 16)
    a = tl.load(pointers[0] + o)
    b = tl.load(pointers[1] + o)
    total, count = _sum_and_count((a, b, a + 1))
    state = (total, n)
    for i in range(n):
        state = (state[0] + i, state[1] * 2)
    first, second = state
    tl.store(x + o, first + count)
    tl.store(z, second)


@case("*fp32! i32", options={"num_warps": 8, "num_stages": 4})
@triton.jit
def carried_values(x, n):
    o = tl.arange(0, 128)
    p = x + o
    a = tl.zeros([128], tl.float32)
    b = tl.full([128], 1.0, tl.float32)
    k = 0
    flag = n > 100
    for i in range(n):
        a, b = b, a + b
        p += 128
        k = k * 3 + i
        flag = (k & 1) == 0
        if flag:
            a += tl.load(p)
    tl.store(x + o, a + b + k + flag.to(tl.float32))


@case("*i32! i32")
@triton.jit
def collatz(out, n):
    i = n
    steps = 0
    while i != 1:
        if i % 2 == 0:  # noqa: SIM108 (a branch of the kernel)
            i = i // 2
        else:
            i = 3 * i + 1
        steps += 1
    tl.store(out, steps)


@case("*i32! *i32! i32")
@triton.jit
def binary_search(values, out, n):
    o = tl.arange(0, 32)
    want = tl.load(out + o)
    low = tl.zeros([32], tl.int32)
    high = tl.full([32], 0, tl.int32) + n
    while tl.max(high - low) > 0:
        middle = (low + high) // 2
        v = tl.load(values + middle, mask=middle < n, other=2147483647)
        low = tl.where(v < want, middle + 1, low)
        high = tl.where(v < want, high, middle)
    tl.store(out + o, low)


@case("*fp32! i32!")
@triton.jit
def grouped_programs(x, n):
    pid = tl.program_id(0)
    row, col = tl.swizzle2d(pid // 4, pid % 4, n, 4, 2)
    width = min(4, n - (pid // 8) * 4)
    tl.store(x + row * 4 + col, pid + width % 3)


@case("*fp32! i32")
@triton.jit
def static_checks(x, n):
    o = tl.arange(0, 32)
    tl.static_assert(x.dtype.element_ty == tl.float32, "a float is wanted")
    tl.static_assert(o.numel == 32)
    bits: tl.constexpr = x.dtype.element_ty.primitive_bitwidth
    tl.static_print("bits", bits)
    tl.store(x + o, tl.load(x + o) + bits + o.shape[0] + tl.constexpr(3))
