"""Kernels over memory: hints, masks, pointers, descriptors, atomic operations. See `kernels.py`."""

import triton
import triton.language as tl
from kernels import case
from kernels_types import each


@case("*fp32! *fp32! i32")
@triton.jit
def load_hints(x, out, n):
    o = tl.arange(0, 128)
    m = o < n
    v = tl.load(x + o, cache_modifier=".ca") + tl.load(x + o, mask=m, cache_modifier=".cg")
    v += tl.load(x + o, mask=m, other=1.0, cache_modifier=".cv") + tl.load(x + o, volatile=True)
    v += tl.load(x + o, eviction_policy="evict_first") + tl.load(x + o, m, 2.0, eviction_policy="evict_last")
    tl.store(out + o, v, cache_modifier=".wb")
    tl.store(out + o, v, mask=m, cache_modifier=".cg")
    tl.store(out + o, v + 1, mask=m, cache_modifier=".cs")
    tl.store(out + o, v + 2, mask=m, cache_modifier=".wt")
    tl.store(out + o, v + 3, mask=m, eviction_policy="evict_last")


@case("*fp32! *fp32! i32", binary=False)
@triton.jit
def hints_together(x, out, n):
    o = tl.arange(0, 128)
    v = tl.load(x + o, o < n, cache_modifier=".cg", eviction_policy="evict_last", volatile=True)
    tl.store(out + o, v, mask=o < n, cache_modifier=".cg", eviction_policy="evict_first")


@each(("i1", "i8", "u16", "i64", "fp16", "bf16", "fp64", "fp8e4nv", "fp8e5"), "*T! *T! i32", "copy")
@triton.jit
def copy(x, out, n):
    o = tl.program_id(0) * 64 + tl.arange(0, 64)
    tl.store(out + o, tl.load(x + o, mask=o < n), mask=o < n)


@case("*fp32! *fp32! i32 i1")
@triton.jit
def scalar_accesses(x, out, n, flag):
    v = tl.load(x + n) + tl.load(x, mask=n > 3, other=7.0) + tl.load(x + 1, mask=flag)
    tl.store(out, v)
    tl.store(out + 1, v * 2, mask=n > 3)
    tl.store(out + 2, 1.0, mask=flag)


@case("*fp32! *fp32! i32 i32 i32")
@triton.jit
def masks_2d(x, out, rows, cols, stride):
    r = tl.program_id(0) * 16 + tl.arange(0, 16)
    c = tl.program_id(1) * 32 + tl.arange(0, 32)
    m = (r[:, None] < rows) & (c[None, :] < cols)
    v = tl.load(x + r[:, None] * stride + c[None, :], mask=m, other=0.0)
    row_only = tl.load(x + r[:, None] * stride + c[None, :], mask=r[:, None] < rows, other=-1.0)
    tl.store(out + r[:, None] * stride + c[None, :], v + row_only, mask=m)


@case("*fp32! *fp32! i32 i32")
@triton.jit
def hints(x, out, n, stride):
    tl.assume(n % 16 == 0)
    tl.assume(stride > 0)
    o = tl.multiple_of(tl.max_contiguous(tl.program_id(0) * 64 + tl.arange(0, 64), 64), 64)
    s = tl.multiple_of(stride, 16)
    r = tl.max_constancy(tl.arange(0, 64) // 8, 8)
    p = tl.multiple_of(x + o[:, None] * s + r[None, :], (16, 1))
    tl.store(out + o[:, None] * s + r[None, :], tl.load(p, mask=(o < n)[:, None]))


@case("*fp32! *i64! *i32! i32")
@triton.jit
def gathered_rows(x, rows, out, stride):
    i = tl.load(rows + tl.arange(0, 16))
    c = tl.arange(0, 32)
    p = x + i[:, None] * stride + c[None, :]
    q = tl.where(i[:, None] > 3, p, x + c[None, :])
    tl.store(out + tl.arange(0, 16)[:, None] * 32 + c[None, :], tl.load(q).to(tl.int32))


@case("*fp32! *u64! i32")
@triton.jit
def pointer_arithmetic(x, out, n):
    o = tl.arange(0, 16)
    p = x + o
    q = p + n
    tl.store(out + o, q.to(tl.uint64) - p.to(tl.uint64))
    r = x
    for i in range(n):
        r += i
        if i % 2 == 0:
            r = x
    tl.store(r, 1.0)


@case("*i8! *fp32! *i32!")
@triton.jit
def reinterpreted_pointers(raw, f, i):
    o = tl.arange(0, 16)
    words = raw.to(tl.pointer_type(tl.int32))
    tl.store(i + o, tl.load(words + o))
    halves = (f + o * 2).to(tl.pointer_type(tl.float16))
    tl.store(halves, tl.load(halves + 1))
    tl.store((i + o).to(tl.pointer_type(tl.float32), bitcast=True), tl.load(f + o))


@case("*i32! *i32!", SEM="relaxed", SCOPE="gpu", name="atomic_relaxed_gpu")
@case("*i32! *i32!", SEM="acquire", SCOPE="cta", name="atomic_acquire_cta")
@case("*i32! *i32!", SEM="release", SCOPE="sys", name="atomic_release_sys")
@case("*i32! *i32!", SEM="acq_rel", SCOPE="gpu", name="atomic_acq_rel_gpu")
@case("*i64! *i64!", SEM="relaxed", SCOPE="sys", name="atomic_relaxed_sys_i64")
@case("*u32! *u32!", SEM="acq_rel", SCOPE="cta", name="atomic_acq_rel_cta_u32")
@case("*u64! *u64!", SEM="acquire", SCOPE="sys", name="atomic_acquire_sys_u64")
@triton.jit
def integer_atomics(x, y, SEM: tl.constexpr, SCOPE: tl.constexpr):
    o = tl.arange(0, 32)
    v = tl.load(y + o)
    m = v > 3
    a = tl.atomic_add(x + o, v, mask=m, sem=SEM, scope=SCOPE)
    a += tl.atomic_max(x + o, v, sem=SEM, scope=SCOPE)
    a += tl.atomic_min(x + o, v, mask=m, sem=SEM, scope=SCOPE)
    a += tl.atomic_and(x + o, v, sem=SEM, scope=SCOPE)
    a += tl.atomic_or(x + o, v, mask=m, sem=SEM, scope=SCOPE)
    a += tl.atomic_xor(x + o, v, sem=SEM, scope=SCOPE)
    a += tl.atomic_xchg(x + o, v, mask=m, sem=SEM, scope=SCOPE)
    a += tl.atomic_cas(x + o, v, a, sem=SEM, scope=SCOPE)
    tl.atomic_add(x, tl.load(y), sem=SEM, scope=SCOPE)
    tl.store(y + o, a)


@case("*fp32! *fp32!", SEM="relaxed", name="atomic_fp32")
@case("*fp64! *fp64!", SEM="acq_rel", name="atomic_fp64")
@triton.jit
def float_atomics(x, y, SEM: tl.constexpr):
    o = tl.arange(0, 32)
    v = tl.load(y + o)
    a = tl.atomic_add(x + o, v, mask=v > 0, sem=SEM)
    a += tl.atomic_max(x + o, v, sem=SEM)
    a += tl.atomic_min(x + o, v, mask=v < 5, sem=SEM)
    a += tl.atomic_xchg(x + o, v, sem=SEM)
    a += tl.atomic_cas(x + o, v, a, sem=SEM)
    tl.store(y + o, a)


@case("*fp16! *fp16! *bf16! *bf16!")
@triton.jit
def half_atomics(x, y, b, c):
    o = tl.arange(0, 32)
    tl.store(y + o, tl.atomic_add(x + o, tl.load(y + o), sem="relaxed"))
    tl.store(c + o, tl.atomic_add(b + o, tl.load(c + o)))
    tl.atomic_cas(x + o, tl.load(y + o), tl.load(y + o))


@case("*fp32! *i32! *i32!")
@triton.jit
def lock_and_count(x, lock, count):
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    n = tl.load(count)
    o = tl.arange(0, 32)
    v = tl.load(x + o)
    tl.store(x + o, tl.where(n == 0, 1.0, v + 1.0))
    tl.store(count, n + 1)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@case("*fp32! *fp32! *i32! i32")
@triton.jit
def last_program_sums(x, partial, ticket, n):
    pid = tl.program_id(0)
    o = tl.arange(0, 64)
    tl.store(partial + pid, tl.sum(tl.load(x + pid * 64 + o), 0))
    tl.debug_barrier()
    if tl.atomic_add(ticket, 1, sem="acq_rel") == tl.num_programs(0) - 1:
        v = tl.load(partial + o, mask=o < n, other=0.0, cache_modifier=".cg")
        tl.store(x, tl.sum(v, 0))


@each(("fp8e5", "bf16", "fp32", "i8", "u16", "i32"), "*T! *T! i32 i32!", "descriptor")
@triton.jit
def descriptor_types(x, out, M, N):
    d = tl.make_tensor_descriptor(x, [M, N], [N, 1], [16, 32])
    e = tl.make_tensor_descriptor(out, [M, N], [N, 1], [16, 32])
    e.store([16, tl.program_id(0) * 32], d.load([tl.program_id(0) * 16, 0]))


@case("*fp16! *fp16! i32 i32! i32")
@triton.jit
def descriptor_loop(x, out, M, N, K):
    d = tl.make_tensor_descriptor(x, [M, N], [N, 1], [16, 64])
    acc = tl.zeros([16, 64], tl.float32)
    for k in tl.range(0, K, num_stages=3):
        acc += d.load([k * 16, 0])
    e = tl.make_tensor_descriptor(out, shape=[M, N], strides=[N, 1], block_shape=[16, 64])
    e.store([tl.program_id(0) * 16, 0], acc.to(tl.float16))


@case("*fp16! *fp16! i32 i32! i32!")
@triton.jit
def descriptor_ranks(x, out, A, B, C):
    d = tl.make_tensor_descriptor(x, [C], [1], [64])
    e = tl.make_tensor_descriptor(out, [A, B, C], [B * C, C, 1], [2, 4, 32])
    f = tl.make_tensor_descriptor(out, [A, A, B, C], [A * B * C, B * C, C, 1], [1, 2, 2, 32])
    v = tl.reshape(d.load([0]), [1, 2, 32])
    w = f.load([0, 0, 0, 0]).reshape([4, 32])
    e.store([0, 0, 0], tl.broadcast_to(tl.reshape(v, [2, 1, 32]), [2, 4, 32]) + w)


@case("tensordesc<fp32[32]> tensordesc<bf16[8,64]> tensordesc<i8[2,16,32]> i32", name="host_descriptor_types")
@triton.jit
def host_descriptor_types(a, b, c, n):
    a.atomic_add([n], a.load([0]))
    b.store([n, 0], b.load([0, n]) * 2)
    c.store([0, n, 0], c.load([n, 0, 0]))


@case("*u32! *u64! *fp16! *bf16! *i64!")
@triton.jit
def descriptor_reduce_types(u, w, h, b, i):
    d = tl.make_tensor_descriptor(u, [64, 32], [32, 1], [16, 32])
    d.atomic_max([0, 0], d.load([16, 0]))
    d.atomic_min([0, 0], d.load([16, 0]))
    e = tl.make_tensor_descriptor(w, [64, 32], [32, 1], [16, 32])
    e.atomic_add([0, 0], e.load([16, 0]))
    e.atomic_max([0, 0], e.load([16, 0]))
    f = tl.make_tensor_descriptor(h, [64, 32], [32, 1], [16, 32])
    f.atomic_add([0, 0], f.load([16, 0]))
    f.atomic_max([0, 0], f.load([16, 0]))
    g = tl.make_tensor_descriptor(b, [64, 32], [32, 1], [16, 32])
    g.atomic_min([0, 0], g.load([16, 0]))
    k = tl.make_tensor_descriptor(i, [64, 32], [32, 1], [16, 32])
    k.atomic_and([0, 0], k.load([16, 0]))
    k.atomic_min([0, 0], k.load([16, 0]))


@case("*fp32! *fp32! i32 i32!", arch=80, name="descriptor_reduce_sm80")
@triton.jit
def descriptor_reduce_old(x, out, M, N):
    d = tl.make_tensor_descriptor(x, [M, N], [N, 1], [16, 32])
    e = tl.make_tensor_descriptor(out, [M, N], [N, 1], [16, 32], padding_option="nan")
    e.atomic_add([0, 0], d.load([0, 0]))


@case("*bf16! *bf16! *i32! i32 i32!", arch=100, name="descriptor_gather_bf16")
@triton.jit
def descriptor_gather_scaled(x, out, rows, M, N):
    d = tl.make_tensor_descriptor(x, [M, N], [N, 1], [1, 64])
    e = tl.make_tensor_descriptor(out, [M, N], [N, 1], [1, 64])
    r = tl.load(rows + tl.arange(0, 8))
    for k in range(0, N, 64):
        e.scatter(d.gather(r, k) * 2, r + 1, k)


@case("*i8! *i8! i32 i32 i32")
@triton.jit
def block_pointers_1d(x, out, n, start, stride):
    p = tl.make_block_ptr(x, (n,), (stride,), (start,), (64,), (0,))
    q = tl.make_block_ptr(out, shape=(n,), strides=(1,), offsets=(0,), block_shape=(64,), order=(0,))
    v = tl.load(p, boundary_check=(0,))
    p = tl.advance(p, (64,))
    tl.store(q, v + tl.load(p, boundary_check=(0,), padding_option="zero"), boundary_check=(0,))


@case("*fp32! *fp32! i64 i64 i64")
@triton.jit
def block_pointers_3d(x, out, A, B, C):
    p = tl.make_block_ptr(x, (A, B, C), (B * C, C, 1), (0, 0, 0), (2, 8, 16), (2, 1, 0))
    q = tl.make_block_ptr(out, (C, B, A), (1, C, B * C), (0, 0, 0), (16, 8, 2), (0, 1, 2))
    for _ in range(3):
        tl.store(q, tl.permute(tl.load(p, boundary_check=(0, 2)), (2, 1, 0)), boundary_check=(1, 2))
        p = p.advance((0, 8, 0))
        q = tl.advance(q, (0, 8, 0))


@case("*fp32! *i32!", options={"debug": True})
@triton.jit
def prints_and_asserts(x, i):
    o = tl.arange(0, 16)
    v = tl.load(x + o)
    n = tl.load(i)
    tl.device_print("scalar", n)
    tl.device_print("values", v, o, n)
    tl.device_print("bits", tl.load(i + o).to(tl.uint32), hex=True)
    tl.static_print("compiled", v.dtype)
    tl.device_assert(n >= 0)
    tl.device_assert(v == v, "no NaN", mask=o < n)
    assert n < 100, "too many"
    tl.store(x + o, v)
