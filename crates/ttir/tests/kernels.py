"""Small Triton kernels that cover the language; `harvest.py` turns each case into a TTIR fixture.

A case is a kernel with an argument signature and constexpr values: `@case("*fp32 i32", BLOCK=64)`.
A `!` after an argument type marks it divisible by 16, as the launcher does for aligned pointers and sizes.
"""

import triton
import triton.language as tl
from triton.language.extra import libdevice

CASES = []


def case(signature, *, name=None, raw=False, binary=True, arch=90, options=None, **constexprs):
    """Register a kernel under one signature.

    `raw`: keep the module as the front end emits it, before any pass. `binary=False`: Triton reads it but fails to
    compile it.
    """

    def register(fn):
        CASES.append(
            {
                "fn": fn,
                "name": name or fn.__name__,
                "signature": signature.split(),
                "constexprs": constexprs,
                "raw": raw,
                "binary": binary and not raw,
                "arch": arch,
                "options": options or {},
            }
        )
        return fn

    return register


@case("*fp32! *fp32! *fp32! i32!", BLOCK=1024)
@case("*fp32 *fp32 *fp32 i32", name="add_raw", raw=True, BLOCK=64)
@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(out + offs, tl.load(x + offs, mask=mask) + tl.load(y + offs, mask=mask), mask=mask)


@case("*fp32! *fp32! i32! i32! i32", BLOCK=256)
@triton.jit
def softmax(x, out, stride, out_stride, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    mask = offs < cols
    v = tl.load(x + row * stride + offs, mask=mask, other=-float("inf"))
    v = tl.exp(v - tl.max(v, axis=0))
    tl.store(out + row * out_stride + offs, v / tl.sum(v, axis=0), mask=mask)


@case("*fp16! *fp16! *fp16! i32! i32! i32!", PRECISION="tf32", ACC=tl.float32)
@case("*fp32! *fp32! *fp32! i32! i32! i32!", name="matmul_ieee", PRECISION="ieee", ACC=tl.float32)
@case("*bf16! *bf16! *fp32! i32! i32! i32!", name="matmul_bf16", PRECISION="tf32", ACC=tl.float32)
@case("*i8! *i8! *i32! i32! i32! i32!", name="matmul_i8", PRECISION="tf32", ACC=tl.int32)
@case("*fp32! *fp32! *fp32! i32! i32! i32!", name="matmul_tf32x3", PRECISION="tf32x3", ACC=tl.float32)
@triton.jit
def matmul(
    a,
    b,
    c,
    M,
    N,
    K,
    PRECISION: tl.constexpr,
    ACC: tl.constexpr,
    BM: tl.constexpr = 32,
    BN: tl.constexpr = 32,
    BK: tl.constexpr = 32,
):
    pid = tl.program_id(0)
    pm, pn = tl.swizzle2d(pid // tl.cdiv(N, BN), pid % tl.cdiv(N, BN), tl.cdiv(M, BM), tl.cdiv(N, BN), 4)
    rm = pm * BM + tl.arange(0, BM)
    rn = pn * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    pa = a + rm[:, None] * K + rk[None, :]
    pb = b + rk[:, None] * N + rn[None, :]
    acc = tl.zeros((BM, BN), dtype=ACC)
    for k in range(0, tl.cdiv(K, BK)):
        x = tl.load(pa, mask=(rm[:, None] < M) & (rk[None, :] < K - k * BK), other=0)
        y = tl.load(pb, mask=(rn[None, :] < N) & (rk[:, None] < K - k * BK), other=0)
        acc = tl.dot(x, y, acc, input_precision=PRECISION, out_dtype=ACC)
        pa += BK
        pb += BK * N
    tl.store(c + rm[:, None] * N + rn[None, :], acc, mask=(rm[:, None] < M) & (rn[None, :] < N))


@case("*fp32! *fp32! *i32! i32", BLOCK=64)
@triton.jit
def argmax_rows(x, values, indices, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offs = tl.arange(0, BLOCK)
    v = tl.load(x + row * cols + offs, mask=offs < cols, other=float("-inf"))
    best, index = tl.max(v, axis=0, return_indices=True)
    tl.store(values + row, best)
    tl.store(indices + row, index + tl.argmin(v, axis=0, tie_break_left=False))


@triton.jit
def _max(a, b):
    return tl.maximum(a, b)


@triton.jit
def _linear(a0, b0, a1, b1):
    return a0 * a1, b0 * a1 + b1


@case("*fp32! *fp32! *i32! i32", BLOCK=64)
@triton.jit
def scans(x, out, ints, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    v = tl.load(x + offs, mask=offs < n, other=0.0)
    s = tl.cumsum(v, axis=0) + tl.cumprod(v, axis=0, reverse=True)
    s += tl.associative_scan(v, 0, _max)
    a, b = tl.associative_scan((v, s), 0, _linear)
    tl.store(out + offs, a + b)
    tl.store(ints + offs, tl.cumsum((v > 0).to(tl.int32), axis=0))


@case("*fp32! *fp32! i32 fp32")
@triton.jit
def layer_norm(x, out, cols, eps, BLOCK: tl.constexpr = 128):
    row = tl.program_id(0)
    x += row * cols
    mean = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        mean += tl.load(x + offs, mask=offs < cols, other=0.0, eviction_policy="evict_last")
    mu = tl.sum(mean, axis=0) / cols
    var = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        d = tl.where(offs < cols, tl.load(x + offs, mask=offs < cols, other=0.0) - mu, 0.0)
        var += d * d
    rstd = 1 / tl.sqrt(tl.sum(var, axis=0) / cols + eps)
    for start in range(0, cols, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        v = tl.load(x + offs, mask=offs < cols, eviction_policy="evict_first")
        tl.store(out + row * cols + offs, (v - mu) * rstd, mask=offs < cols, cache_modifier=".wb")


@case("*fp16! *fp16! *fp16! *fp16! fp32 i32!")
@triton.jit
def attention(q, k, v, out, scale, N, BM: tl.constexpr = 32, BN: tl.constexpr = 32, D: tl.constexpr = 32):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.arange(0, BN)
    rd = tl.arange(0, D)
    base = tl.program_id(1) * N * D
    qv = tl.load(q + base + rm[:, None] * D + rd[None, :])
    m = tl.full([BM], float("-inf"), tl.float32)
    total = tl.zeros([BM], tl.float32)
    acc = tl.zeros([BM, D], tl.float32)
    for start in range(0, (tl.program_id(0) + 1) * BM, BN):
        kv = tl.load(k + base + (start + rn)[None, :] * D + rd[:, None])
        s = tl.dot(qv, kv) * scale
        s = tl.where(rm[:, None] >= (start + rn)[None, :], s, float("-inf"))
        new = tl.maximum(m, tl.max(s, 1))
        p = tl.math.exp2(s - new[:, None])
        alpha = tl.exp2(m - new)
        total = total * alpha + tl.sum(p, 1)
        vv = tl.load(v + base + (start + rn)[:, None] * D + rd[None, :])
        acc = acc * alpha[:, None] + tl.dot(p.to(tl.float16), vv)
        m = new
    tl.store(out + base + rm[:, None] * D + rd[None, :], (acc / total[:, None]).to(tl.float16))


@case("*fp32! *fp32! i32")
@triton.jit
def math_functions(x, out, n, BLOCK: tl.constexpr = 64):
    offs = tl.arange(0, BLOCK)
    v = tl.load(x + offs, mask=offs < n)
    r = tl.exp(v) + tl.exp2(v) + tl.log(v) + tl.log2(v) + tl.sin(v) + tl.cos(v) + tl.sqrt(v) + tl.rsqrt(v)
    r += tl.abs(v) + tl.floor(v) + tl.ceil(v) + tl.erf(v) + tl.fma(v, r, v) + tl.sqrt_rn(v) + tl.div_rn(v, r)
    r += tl.sigmoid(v) + tl.fdiv(v, r) + tl.clamp(v, -1.0, 1.0) + tl.minimum(v, r) + tl.maximum(v, r)
    r += tl.maximum(v, r, propagate_nan=tl.PropagateNan.ALL) + tl.minimum(v, r, propagate_nan=tl.PropagateNan.ALL)
    r += tl.clamp(v, r, 1.0, propagate_nan=tl.PropagateNan.ALL) + v % r - (-v)
    tl.store(out + offs, r, mask=offs < n)


@case("*i32! *i32! *u32! *i64! i32")
@triton.jit
def integer_math(x, y, u, wide, n, BLOCK: tl.constexpr = 64):
    offs = tl.arange(0, BLOCK)
    a = tl.load(x + offs)
    b = tl.load(y + offs)
    c = tl.load(u + offs)
    r = a // b + a % b + (a << 2) + (a >> 1) + (a & b) + (a | b) + (a ^ b) + (~a) + (-b) + a * b - b
    s = c // 3 + c % 7 + (c >> 3) + tl.umulhi(c, c) + tl.maximum(c, 5) + tl.minimum(c, 9)
    r += tl.abs(a) + tl.maximum(a, b) + tl.minimum(a, b) + tl.where(a <= b, a, b)
    r = tl.where((a == b) | (a != n) & (a < b) ^ (a >= b), r, r + 1)
    s = tl.where((c < 4) | (c <= 5) | (c > 6) | (c >= 7), s, s + 1)
    tl.store(x + offs, r)
    tl.store(u + offs, s)
    tl.store(wide + offs, a.to(tl.int64) * b + c.to(tl.int64) + (a > b).to(tl.int64))


@case("*fp32! *fp16! *bf16! *fp64! *i8! *u8! *i32! *i64!")
@triton.jit
def casts(f32, f16, bf16, f64, i8, u8, i32, i64, BLOCK: tl.constexpr = 64):
    o = tl.arange(0, BLOCK)
    a = tl.load(f32 + o)
    tl.store(f16 + o, a.to(tl.float16))
    tl.store(bf16 + o, a.to(tl.bfloat16, fp_downcast_rounding="rtz"))
    tl.store(f64 + o, a.to(tl.float64) + tl.load(f16 + o).to(tl.float64) + tl.load(bf16 + o).to(tl.float32))
    tl.store(i8 + o, a.to(tl.int8))
    tl.store(u8 + o, a.to(tl.uint8))
    tl.store(i32 + o, a.to(tl.int32, bitcast=True) + tl.load(i8 + o) + tl.load(u8 + o) + (a != 0).to(tl.int32))
    tl.store(i64 + o, tl.load(f64 + o).to(tl.int64) + tl.load(u8 + o).to(tl.float32).to(tl.int64))
    tl.store(f32 + o, tl.load(i64 + o).to(tl.float32) + tl.load(i8 + o) + tl.load(i32 + o).to(tl.float32, bitcast=True))


@case("*i32! *fp32! i32")
@triton.jit
def control_flow(ints, out, n):
    i = 0
    total = 0.0
    while i < n:
        v = tl.load(ints + i)
        if v > 3:
            total += v
        elif v < 0:
            total -= 1.0
            if v == -7:
                tl.store(out + 1, total)
        else:
            total = total * 2
        i += 1
    for j in tl.range(n, 0, -2, num_stages=2):
        total += j
    tl.store(out, total)


@case("*fp32! i32")
@triton.jit
def early_return(out, n, BLOCK: tl.constexpr = 16):
    if tl.program_id(0) >= n:
        return
    tl.store(out + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.num_programs(0) * 1.0)


@case("*fp32! *i32! *i64! *u32! *fp16! i32")
@triton.jit
def atomics(f, i, w, u, h, n, BLOCK: tl.constexpr = 32):
    o = tl.arange(0, BLOCK)
    m = o < n
    tl.atomic_add(f + o, 1.5, mask=m)
    tl.atomic_add(h + o, 1.5, mask=m, sem="relaxed")
    tl.atomic_add(i, 1, sem="release", scope="cta")
    tl.atomic_max(i + o, o, mask=m, sem="acquire")
    tl.atomic_min(i + o, o, scope="sys")
    tl.atomic_max(u + o, tl.load(u + o))
    tl.atomic_min(u + o, tl.load(u + o))
    tl.atomic_and(i + o, o)
    tl.atomic_or(i + o, o)
    tl.atomic_xor(i + o, o)
    old = tl.atomic_xchg(i + o, o)
    tl.atomic_max(f + o, 2.0)
    while tl.atomic_cas(i, 0, 1) == 1:
        pass
    old += tl.atomic_cas(i + o, old, o, sem="acq_rel")
    tl.atomic_xchg(i, 0)
    tl.atomic_add(w + o, old.to(tl.int64))


@case("*fp32! *fp32! i32 i32", SHAPE=16)
@case("*fp32! *fp32! i32 i32", name="shapes_raw", raw=True, SHAPE=8)
@triton.jit
def shapes(x, out, n, m, SHAPE: tl.constexpr):
    r = tl.arange(0, SHAPE)
    c = tl.arange(0, 32)
    v = tl.load(x + r[:, None] * n + c[None, :])
    t = tl.trans(v)
    p = tl.permute(tl.reshape(v, (SHAPE, 4, 8)), (2, 0, 1))
    j = tl.join(v, v + 1)
    lo, hi = tl.split(j)
    w = tl.interleave(lo, hi)
    f = tl.ravel(v)
    q = tl.cat(f, f, can_reorder=True)
    b = tl.broadcast_to(tl.expand_dims(r, 1), (SHAPE, 32))
    tl.store(out + r[:, None] * n + c[None, :], tl.trans(t) + b)
    tl.store(out + tl.arange(0, SHAPE * 32), tl.reshape(p, (SHAPE * 32,)) + f)
    tl.store(out + tl.arange(0, SHAPE * 64), q + tl.reshape(w, (SHAPE * 64,), can_reorder=True))


@case("*fp32! *fp32! i32")
@triton.jit
def sorting(x, out, n, BLOCK: tl.constexpr = 8):
    o = tl.arange(0, BLOCK)
    v = tl.sort(tl.load(x + o, mask=o < n, other=float("inf")))
    tl.store(out + o, tl.flip(v, 0))


@case("*i32! *i32! *fp32! i32")
@triton.jit
def histogram_gather(x, out, f, n, BLOCK: tl.constexpr = 64):
    o = tl.arange(0, BLOCK)
    v = tl.load(x + o, mask=o < n)
    h = tl.histogram(v, 64, mask=o < n)
    tl.store(out + o, h + tl.histogram(v, 64))
    tl.store(f + o, tl.gather(tl.load(f + o), v, axis=0))


@case("*fp32! i32 i32")
@triton.jit
def random_numbers(out, seed, n, BLOCK: tl.constexpr = 32):
    o = tl.arange(0, BLOCK)
    a, b, c, d = tl.randn4x(seed, o)
    tl.store(out + o, tl.rand(seed, o) + tl.randn(seed, o) + a + b + c + d + tl.randint(seed, o), mask=o < n)


@triton.jit(noinline=True)
def _helper(x, n):
    if n > 3:
        return x * 2
    return x + 1


@triton.jit(noinline=True)
def _pair(x, n):
    return x + n, n * 2


@triton.jit(noinline=True)
def _store_one(p):
    tl.store(p, 1.0)


@case("*fp32! i32")
@case("*fp32! i32", name="calls_raw", raw=True)
@triton.jit
def calls(out, n, BLOCK: tl.constexpr = 32):
    o = tl.arange(0, BLOCK)
    v = _helper(tl.load(out), n)
    v, k = _pair(v, n)
    _store_one(out + k)
    tl.store(out + o, tl.load(out + o) + v)


@case("*fp16! *fp16! i32 i32")
@case("*fp16! *fp16! i32 i32", name="block_pointers_raw", raw=True)
@triton.jit
def block_pointers(x, out, M, N):
    p = tl.make_block_ptr(x, (M, N), (N, 1), (tl.program_id(0) * 16, 0), (16, 32), (1, 0))
    q = tl.make_block_ptr(out, (M, N), (N, 1), (tl.program_id(0) * 16, 0), (16, 32), (1, 0))
    for _ in range(0, N, 32):
        v = tl.load(p, boundary_check=(0, 1), padding_option="zero")
        v += tl.load(p, boundary_check=(1,), padding_option="nan") + tl.load(p, boundary_check=(0,))
        tl.store(q, v, boundary_check=(0, 1))
        p = tl.advance(p, (0, 32))
        q = tl.advance(q, (0, 32))


@case("*fp16! *fp16! i32 i32!")
@case("*fp16! *fp16! i32 i32!", name="descriptors_sm80", arch=80)
@triton.jit
def descriptors(x, out, M, N):
    d = tl.make_tensor_descriptor(x, [M, N], [N, 1], [16, 32])
    e = tl.make_tensor_descriptor(out, [M, N], [N, 1], [16, 32])
    for k in range(0, N, 32):
        v = d.load([tl.program_id(0) * 16, k])
        e.store([tl.program_id(0) * 16, k], v * 2)


@case("*fp16! *fp16! *i32! i32 i32!", arch=100)
@triton.jit
def descriptor_gather_scatter(x, out, rows, M, N):
    d = tl.make_tensor_descriptor(x, [M, N], [N, 1], [1, 32])
    e = tl.make_tensor_descriptor(out, [M, N], [N, 1], [1, 32])
    r = tl.load(rows + tl.arange(0, 32))
    v = d.gather(r, 0)
    e.scatter(v, r, 32)


@case("*fp32! *fp32! i32 i32!")
@triton.jit
def descriptor_reductions(x, out, M, N):
    d = tl.make_tensor_descriptor(x, [M, N], [N, 1], [16, 32])
    e = tl.make_tensor_descriptor(out, [M, N], [N, 1], [16, 32])
    v = d.load([0, 0])
    e.atomic_add([0, 0], v)
    e.atomic_add([16, 0], v)


@case("tensordesc<fp16[16,32]> tensordesc<fp16[16,32]> i32")
@triton.jit
def host_descriptors(d, e, n):
    e.store([0, 0], d.load([tl.program_id(0) * 16, n]))


@case("*fp32! *fp32! i32")
@triton.jit
def libdevice_calls(x, out, n, BLOCK: tl.constexpr = 64):
    o = tl.arange(0, BLOCK)
    v = tl.load(x + o, mask=o < n)
    r = libdevice.tanh(v) + libdevice.pow(v, 3.0) + libdevice.log1p(v) + libdevice.expm1(v) + libdevice.erf(v)
    r += libdevice.rint(v) + libdevice.isnan(v).to(tl.float32) + libdevice.atan2(v, r) + libdevice.fast_expf(v)
    tl.store(out + o, r, mask=o < n)


@case("*i32! *i32! *fp32!")
@triton.jit
def inline_asm(x, y, f, BLOCK: tl.constexpr = 64):
    o = tl.arange(0, BLOCK)
    a = tl.load(x + o)
    b = tl.inline_asm_elementwise(
        "shf.l.wrap.b32 $0, $1, $2, $3;", "=r,r,r,r", [a, a, 7], dtype=tl.int32, is_pure=True, pack=1
    )
    c, d = tl.inline_asm_elementwise(
        """
        {
            add.s32 $0, $2, $3; // "quoted", and a tab\t
            mov.b32 $1, 0f3F800000;
        }
        """,
        "=r,=r,r,r",
        [a, b],
        dtype=(tl.int32, tl.float32),
        is_pure=False,
        pack=1,
    )
    tl.store(y + o, b + c)
    tl.store(f + o, d)


@triton.jit
def _compare(x, y):
    if x < y:
        return x - y
    return x + y


@triton.jit
def _two(x, y):
    return x + y, x - y


@case("*i32! *i32!")
@triton.jit
def map_elementwise(x, y, BLOCK: tl.constexpr = 64):
    o = tl.arange(0, BLOCK)
    a = tl.load(x + o)
    b = tl.load(y + o)
    c = tl.map_elementwise(_compare, a, b)
    d, e = tl.map_elementwise(_two, a, c)
    tl.store(y + o, c + d + e)


@case("*fp32! i32", options={"debug": True})
@triton.jit
def debugging(x, n, BLOCK: tl.constexpr = 32):
    o = tl.arange(0, BLOCK)
    v = tl.load(x + o)
    tl.device_print('value "quoted" ', v, o)
    tl.device_print("only text")
    tl.device_print("hex", n, hex=True)
    tl.device_assert(v > 0, "must be positive")
    tl.assume(n > 0)
    tl.debug_barrier()
    tl.store(x + o, tl.multiple_of(tl.max_contiguous(o, 32), 32) + v + n, mask=o < n)


@case("*fp8e4nv! *fp8e5! *fp16! *fp32!")
@triton.jit
def float8(a, b, c, d, BLOCK: tl.constexpr = 32):
    r = tl.arange(0, BLOCK)
    o = r[:, None] * BLOCK + r[None, :]
    x = tl.load(a + o)
    y = tl.load(b + o)
    tl.store(c + o, x.to(tl.float16) + y.to(tl.float16))
    z = tl.dot(x, x, max_num_imprecise_acc=0)
    tl.store(d + o, z)
    tl.store(a + o, z.to(tl.float8e4nv))
    tl.store(b + o, z.to(tl.float8e5, fp_downcast_rounding="rtz"))
    tl.store(b + o, y)


@case("*fp8e4nv! *fp8e5! *u8! *u8! *fp32!")
@triton.jit
def dot_scaled(a, b, sa, sb, c):
    r = tl.arange(0, 128)
    k = tl.arange(0, 64)
    s = tl.arange(0, 2)
    x = tl.load(a + r[:, None] * 64 + k[None, :])
    y = tl.load(b + k[:, None] * 128 + r[None, :])
    u = tl.load(sa + r[:, None] * 2 + s[None, :])
    w = tl.load(sb + r[:, None] * 2 + s[None, :])
    z = tl.dot_scaled(x, u, "e4m3", y, w, "e5m2")
    z = tl.dot_scaled(x, u, "e4m3", y, None, "e5m2", acc=z)
    tl.store(c + r[:, None] * 128 + r[None, :], z)


@case("*u8! *bf16! *u8! *fp32!")
@triton.jit
def dot_scaled_fp4(a, b, sa, c):
    r = tl.arange(0, 128)
    k = tl.arange(0, 32)
    kk = tl.arange(0, 64)
    s = tl.arange(0, 2)
    x = tl.load(a + r[:, None] * 32 + k[None, :])
    y = tl.load(b + kk[:, None] * 128 + r[None, :])
    u = tl.load(sa + r[:, None] * 2 + s[None, :])
    z = tl.dot_scaled(x, u, "e2m1", y, None, "bf16", fast_math=True)
    tl.store(c + r[:, None] * 128 + r[None, :], z)


@case("*i64! *fp32! i32")
@triton.jit
def pointers(table, out, n, BLOCK: tl.constexpr = 16):
    o = tl.arange(0, BLOCK)
    p = tl.load(table + tl.program_id(0)).to(tl.pointer_type(tl.float32))
    q = tl.load(table + o).to(tl.pointer_type(tl.float32))
    tl.store(out + o, tl.load(p + o) + tl.load(q))
    tl.store(table + o, (out + o).to(tl.int64))
    h = (out + o).to(tl.pointer_type(tl.int32), bitcast=True)
    tl.store(h, tl.load(h, volatile=True) + 1)


@case("*i1! *i16! *fp64! u64 i64 fp64 fp16 i1")
@triton.jit
def scalars(b, h, d, u, w, x, y, flag):
    o = tl.arange(0, 16)
    tl.store(b + o, tl.load(b + o) & flag)
    tl.store(h + o, tl.load(h + o) + 7)
    tl.store(d + o, tl.load(d + o) * x + y + u + w + 0.1)
    if flag:
        tl.store(d, 1e300)


@case("*fp32! *fp32! i32")
@triton.jit
def loops(x, out, n, BLOCK: tl.constexpr = 32):
    o = tl.arange(0, BLOCK)
    acc = tl.zeros([BLOCK], tl.float32)
    for i in tl.static_range(3):
        acc += tl.load(x + o + i * BLOCK)
    for i in tl.range(0, n, 1, loop_unroll_factor=2):
        acc += tl.load(x + o + i)
    for i in tl.range(0, n, flatten=True, disallow_acc_multi_buffer=True, num_stages=3):
        for j in range(i, n):
            acc = tl.where(acc > j, acc - 1.0, acc)
    for i in tl.range(0, n, warp_specialize=True):
        acc += i
    k = n.to(tl.int64)
    for i in range(k):
        acc += i
    tl.store(out + o, acc)


@case("*fp32! *fp32! i32 i32")
@triton.jit
def reductions(x, out, n, m, BLOCK: tl.constexpr = 32):
    r = tl.arange(0, BLOCK)
    v = tl.load(x + r[:, None] * n + r[None, :])
    a = tl.sum(v, 0) + tl.max(v, 1) + tl.min(v, axis=1) + tl.reduce(v, 1, _max)
    i = v.to(tl.int32)
    b = tl.xor_sum(i, 0) + tl.reduce_or(i, 1) + tl.sum(i, 0) + tl.max(i, 1) + tl.sum((v > 0).to(tl.int1), 0)
    c = tl.sum(v) + tl.max(v) + tl.sum(tl.sum(v, 1, keep_dims=True), 0)
    d, e = tl.reduce((v, v + 1), 0, _linear)
    tl.store(out + r, a + b + c + d + e + tl.argmax(v, 1))


@case("*fp32! *fp32!")
@triton.jit
def softmax_builtin(x, out):
    r = tl.arange(0, 16)
    o = r[:, None] * 16 + r[None, :]
    tl.store(out + o, tl.softmax(tl.load(x + o)))


@case("*fp32! *fp32!")
@triton.jit
def topk(x, out):
    o = tl.arange(0, 32)
    tl.store(out + tl.arange(0, 4), tl.topk(tl.load(x + o), 4))


@case("*fp32! i32 i32")
@triton.jit
def constants(out, n, m):
    o = tl.arange(0, 8)
    v = tl.full([8], 3.14159, tl.float32) + tl.full([8], float("nan"), tl.float32) * 1e-45
    v += tl.full([8], -0.0, tl.float32)
    w = tl.full([8], 65504.0, tl.float16) + tl.full([8], -float("inf"), tl.float16)
    z = tl.full([8], 1e-300, tl.float64)
    i = tl.full([8], -9223372036854775808, tl.int64) + tl.full([8], 0x7FFFFFFF, tl.int64)
    tl.store(out + o, v + w + z.to(tl.float32) + i.to(tl.float32) + (n * 2147483647 + m))


@triton.jit
def _gelu(x):
    return 0.5 * x * (1 + libdevice.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


@triton.jit
def _bias_gelu(x, bias):
    return _gelu(x + bias)


@case("*fp16! *fp16! *fp16! i32")
@triton.jit
def inlined_calls(x, bias, out, n, BLOCK: tl.constexpr = 64):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + o, mask=o < n, other=0).to(tl.float32)
    tl.store(out + o, _bias_gelu(v, tl.load(bias + o, mask=o < n, other=0)), mask=o < n)


@case("*fp32! *fp32! *fp32!")
@triton.jit
def batched_dot(a, b, c):
    r = tl.arange(0, 16)
    o = tl.arange(0, 4)[:, None, None] * 256 + r[None, :, None] * 16 + r[None, None, :]
    tl.store(c + o, tl.dot(tl.load(a + o), tl.load(b + o), input_precision="bf16x3"))


@case("*fp16! *fp16! *fp16!")
@triton.jit
def half_accumulator(a, b, c):
    r = tl.arange(0, 16)
    o = r[:, None] * 16 + r[None, :]
    x = tl.load(a + o)
    acc = tl.dot(x, tl.trans(tl.load(b + o)), out_dtype=tl.float16)
    tl.store(c + o, tl.dot(acc, x, acc, out_dtype=tl.float16))


@case("*fp32! *fp32!")
@triton.jit
def split_scalars(x, out):
    a, b = tl.split(tl.load(x + tl.arange(0, 2)))
    tl.store(out, a * b)
    v = tl.sum(tl.load(x + tl.arange(0, 4)), keep_dims=True)
    tl.store(out + 1, v.item())
    tl.store(out + 2 + tl.arange(0, 2), tl.join(a, b))


@case("*fp32! *fp16! i32")
@triton.jit
def function_forms(x, out, n, BLOCK: tl.constexpr = 32):
    o = tl.max_constancy(tl.arange(0, BLOCK), 1)
    v = tl.load(x + o)
    r = tl.add(tl.sub(v, 1.0), tl.mul(v, tl.zeros_like(v)))
    tl.static_assert(BLOCK == 32)
    s = tl.cast(r, tl.float16) + tl.view(v, (BLOCK,)).to(tl.float16)
    s = tl.where(tl.cdiv(n, 4) > 3, s, tl.cast(o, tl.float16))
    tl.store(out + o, s, mask=(o < n).logical_or(o == 3).logical_and(n > 0))


@case("*fp16! *fp16! i32 i32!")
@triton.jit
def descriptor_functions(x, out, M, N):
    d = tl.make_tensor_descriptor(x, [M, N], [N, 1], [16, 32], padding_option="nan")
    e = tl.make_tensor_descriptor(out, [M, N], [N, 1], [16, 32])
    tl.store_tensor_descriptor(e, [0, 0], tl.load_tensor_descriptor(d, [16, 0]))
    b = tl.make_tensor_descriptor(x, [4, M, N], [M * N, N, 1], [1, 16, 32])
    e.store([0, 32], b.load([1, 0, 0]).reshape([16, 32]))


@case("*i32! *i32! *i32!")
@triton.jit
def descriptor_reduce_kinds(x, out, values):
    d = tl.make_tensor_descriptor(out, [64, 32], [32, 1], [16, 32])
    o = tl.arange(0, 16)[:, None] * 32 + tl.arange(0, 32)[None, :]
    v = tl.load(values + o)
    d.atomic_add([0, 0], v)
    d.atomic_min([0, 0], v)
    d.atomic_max([0, 0], v)
    d.atomic_and([0, 0], v)
    d.atomic_or([0, 0], v)
    d.atomic_xor([0, 0], v)


@case("*i32! *fp32! i64")
@triton.jit
def random_bits(ints, floats, seed, BLOCK: tl.constexpr = 16):
    o = tl.arange(0, BLOCK)
    a, b, c, d = tl.randint4x(seed, o)
    e, f = tl.pair_uniform_to_normal(tl.uint_to_uniform_float(a), tl.uint_to_uniform_float(b))
    tl.store(ints + o, c ^ d)
    tl.store(floats + o, e + f)


@triton.jit
def _swap_pair(pair, n):
    a, b = pair
    return (b, a + n)


@case("*fp32! i32 fp32")
@triton.jit
def tuples(out, n, s):
    pair = (s, s + 1.0)
    for i in range(n):
        pair = _swap_pair(pair, i)
    nested = (pair, (n, pair[1]))
    tl.store(out, nested[0][0] + nested[1][1] + nested[1][0])


@case("*fp32! *i32! i32")
@triton.jit
def nested_loops(x, flags, n, BLOCK: tl.constexpr = 16):
    o = tl.arange(0, BLOCK)
    v = tl.zeros([BLOCK], tl.float32)
    c = 0
    for i in range(n):
        f = tl.load(flags + i)
        while f > 0:
            if f % 2 == 0:
                for j in range(f, n, 3):
                    v += tl.load(x + j)
                    c += j
            else:
                v -= 1.0
            f -= 1
        c = tl.where(tl.max(v) > 3.0, c, i)
    tl.store(x + o, v + c)


@case("*fp32! *fp32! i32")
@case("*fp32! *fp32! i32", name="return_in_branches_raw", raw=True)
@triton.jit
def return_in_branches(x, out, n):
    i = tl.program_id(0)
    if i > n:
        if n == 3:
            tl.store(out, 1.0)
            return
        tl.store(out + 1, 1.0)
    else:
        v = tl.load(x + i)
        if v < 0:
            return
        tl.store(out + i, v)
    tl.store(out + 2, 2.0)


@case("*fp32! *fp32! i32", options={"num_ctas": 1, "enable_fp_fusion": False})
@triton.jit
def sync_and_special_registers(x, out, n):
    o = tl.arange(0, 32)
    tl.extra.cuda.gdc_wait()
    v = tl.load(x + o) + tl.extra.cuda.num_threads() + tl.extra.cuda.num_warps()
    tl.debug_barrier()
    tl.extra.cuda.gdc_launch_dependents()
    tl.store(out + o, v + tl.num_programs(1) + tl.program_id(2))


@case("*fp32! *i32! *i64! *fp64!")
@triton.jit
def libdevice_integers(f, i, w, d):
    o = tl.arange(0, 16)
    a = tl.load(i + o)
    b = tl.load(w + o)
    x = tl.load(f + o)
    y = tl.load(d + o)
    c = libdevice.clz(a) + libdevice.popc(a) + libdevice.ffs(a) + libdevice.brev(a) + libdevice.float2int_rn(x)
    tl.store(i + o, c + libdevice.signbit(x) + libdevice.isinf(x).to(tl.int32))
    tl.store(w + o, libdevice.mulhi(b, b) + libdevice.abs(b))
    tl.store(f + o, libdevice.fma(x, x, x) + libdevice.ldexp(x, a) + libdevice.int2float_rn(a) + libdevice.round(x))
    tl.store(d + o, libdevice.sin(y) + libdevice.tgamma(y) + libdevice.fmod(y, y) + libdevice.nearbyint(y))


@case("*fp32! *fp16! *i32! *bf16!")
@triton.jit
def any_and_all(x, h, out, b):
    o = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
    r = tl.arange(0, 16)
    v = tl.load(x + o)
    every = tl.min((v > 0).to(tl.int32), axis=1)
    some = tl.max((v > 0).to(tl.int32), axis=1)
    low, where = tl.min(tl.load(h + o), axis=0, return_indices=True, return_indices_tie_break_left=False)
    tl.store(out + r, every + some + where + tl.sum(tl.load(b + o), 0).to(tl.int32))
    tl.store(h + r, low + tl.max(tl.load(b + o), 1).to(tl.float16))


@case("*fp32! *fp32! i32")
@triton.jit
def scans_2d(x, out, n):
    o = tl.arange(0, 8)[:, None] * 16 + tl.arange(0, 16)[None, :]
    v = tl.load(x + o, mask=o < n, other=0.0)
    a = tl.cumsum(v, 1, reverse=True) + tl.associative_scan(v, 0, _max)
    b = tl.cumsum(tl.load(x + o).to(tl.bfloat16), 0).to(tl.float32)
    tl.store(out + o, a + b, mask=o < n)


@case("*fp8e4b15! *fp16!", name="float8_e4b15", arch=80)
@triton.jit
def float8_old(a, b):
    o = tl.arange(0, 32)
    tl.store(b + o, tl.load(a + o).to(tl.float16))
    tl.store(a + o, (tl.load(b + o) * 2).to(tl.float8e4b15))


@case("*bf16! *bf16! *bf16! *i32! i32! i32!")
@triton.jit
def embedding_rows(table, out, extra, ids, cols, rows):
    row = tl.load(ids + tl.program_id(0)).to(tl.int64)
    for start in range(0, cols, 64):
        o = start + tl.arange(0, 64)
        v = tl.load(table + row * cols + o, mask=(o < cols) & (row >= 0) & (row < rows), other=0.0)
        tl.store(out + tl.program_id(0) * cols + o, v + tl.load(extra + o, mask=o < cols), mask=o < cols)


@case("*fp32! *fp32! *fp32! i32 i32 i32")
@triton.jit
def convolution(x, w, out, H, W, C, K: tl.constexpr = 3, BLOCK: tl.constexpr = 64):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row, col = o // W, o % W
    acc = tl.zeros([BLOCK], tl.float32)
    for c in range(C):
        for dy in tl.static_range(K):
            for dx in tl.static_range(K):
                y, z = row + dy - 1, col + dx - 1
                inside = (y >= 0) & (y < H) & (z >= 0) & (z < W)
                acc += tl.load(x + (c * H + y) * W + z, mask=inside, other=0.0) * tl.load(w + (c * K + dy) * K + dx)
    tl.store(out + o, acc, mask=o < H * W)


@case("*fp32! *i64! *fp32! i32 i32", options={"debug": True, "sanitize_overflow": True})
@triton.jit
def cross_entropy_checked(logits, labels, loss, rows, cols, BLOCK: tl.constexpr = 32):
    row = tl.program_id(0)
    o = tl.arange(0, BLOCK)
    label = tl.load(labels + row)
    tl.device_assert((label >= 0) & (label < cols), "label out of range")
    v = tl.load(logits + row * cols + o, mask=o < cols, other=float("-inf"))
    m = tl.max(v, 0)
    tl.store(loss + row, tl.log(tl.sum(tl.exp(v - m), 0)) + m - tl.sum(tl.where(o == label, v, 0.0), 0))


@case("*fp32! **fp32 i32", name="pointer_tables_raw", raw=True)  # Triton 3.6 reads it, but cannot compile it
@triton.jit
def pointer_tables(out, table, n):
    o = tl.arange(0, 8)
    p = tl.load(table + tl.program_id(0))
    tl.store(out + o, tl.load(p + o) + tl.load(p + n))


@case("*fp32! *fp32!")
@triton.jit
def inline_asm_packed(x, out):
    o = tl.arange(0, 64)
    v = tl.load(x + o).to(tl.int8, bitcast=False)
    w = tl.inline_asm_elementwise("and.b32 $0, $1, 0x1F1F1F1F;", "=r,r", [v], dtype=tl.int8, is_pure=True, pack=4)
    t = tl.inline_asm_elementwise("mov.u32 $0, 7;", "=r", [], dtype=tl.int32, is_pure=True, pack=1)
    tl.store(out + o, w.to(tl.float32) + t)


@case("*fp32! *fp32! i32")
@triton.jit
def gather_2d(x, out, n):
    o = tl.arange(0, 8)[:, None] * 16 + tl.arange(0, 16)[None, :]
    i = (o * 7) % 8
    tl.store(out + o, tl.gather(tl.load(x + o), i, 0) + tl.gather(tl.load(x + o), i, 1))


@case("*fp32! i32!")
@triton.jit
def wide_indices(x, n, BLOCK: tl.constexpr = 64):
    o = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK).to(tl.int64)
    o = tl.multiple_of(o, 8)
    u = o.to(tl.uint64)
    k = (u >> 3) % 5 + u // 7
    tl.store(x + o, k.to(tl.float32) + o.to(tl.float64).to(tl.float32), mask=(o < n) & (u > 1))
