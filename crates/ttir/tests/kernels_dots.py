"""Kernels over matrix products in all forms. See `kernels.py`."""

import triton
import triton.language as tl
from kernels import case

PRECISIONS = ("tf32", "tf32x3", "ieee", "bf16x3", "bf16x6")


def every_precision(fn):
    """One case for each precision of an fp32 product."""
    for precision in PRECISIONS:
        case("*fp32! *fp32! *fp32!", name=f"dot_{precision}", PRECISION=precision, OUT=tl.float32)(fn)
    return fn


@every_precision
@case("*fp16! *fp16! *fp32!", name="dot_fp16", PRECISION=None, OUT=tl.float32)
@case("*fp16! *fp16! *fp16!", name="dot_fp16_out", PRECISION=None, OUT=tl.float16)
@case("*bf16! *bf16! *fp32!", name="dot_bf16", PRECISION=None, OUT=tl.float32)
@case("*fp64! *fp64! *fp64!", name="dot_fp64", PRECISION=None, OUT=tl.float64)
@case("*i8! *i8! *i32!", name="dot_i8", PRECISION=None, OUT=tl.int32)
@case("*fp8e4nv! *fp8e4nv! *fp32!", name="dot_fp8", PRECISION=None, OUT=tl.float32)
@case("*fp8e5! *fp8e5! *fp16!", name="dot_fp8_fp16", PRECISION=None, OUT=tl.float16)
@case("*fp8e4nv! *fp8e5! *fp32!", name="dot_fp8_mixed", PRECISION=None, OUT=tl.float32)
@triton.jit
def dots(a, b, c, PRECISION: tl.constexpr, OUT: tl.constexpr):
    r = tl.arange(0, 32)
    o = r[:, None] * 32 + r[None, :]
    acc = tl.dot(tl.load(a + o), tl.load(b + o), input_precision=PRECISION, out_dtype=OUT)
    acc = tl.dot(tl.load(a + o), tl.trans(tl.load(b + o)), acc, input_precision=PRECISION, out_dtype=OUT)
    tl.store(c + o, acc)


@case("*fp16! *fp16! *fp32!")
@triton.jit
def batched_dots(a, b, c):
    r = tl.arange(0, 16)
    k = tl.arange(0, 32)
    g = tl.arange(0, 2)
    x = tl.load(a + g[:, None, None] * 512 + r[None, :, None] * 32 + k[None, None, :])
    y = tl.load(b + g[:, None, None] * 512 + k[None, :, None] * 16 + r[None, None, :])
    o = g[:, None, None] * 256 + r[None, :, None] * 16 + r[None, None, :]
    tl.store(c + o, tl.dot(x, y, tl.load(c + o)))


@case("*fp8e4nv! *fp8e4nv! *fp32!", IMPRECISE=32, name="dot_imprecise")
@case("*fp8e4nv! *fp8e4nv! *fp32!", IMPRECISE=0, name="dot_precise")
@triton.jit
def dots_imprecise(a, b, c, IMPRECISE: tl.constexpr):
    r = tl.arange(0, 64)
    o = r[:, None] * 64 + r[None, :]
    acc = tl.zeros([64, 64], tl.float32)
    for i in range(4):
        acc = tl.dot(tl.load(a + o + i * 4096), tl.load(b + o), acc, max_num_imprecise_acc=IMPRECISE)
    tl.store(c + o, acc)


@case("*fp32! *fp32! *fp32!", allow_tf32=True, name="dot_allow_tf32")
@case("*fp32! *fp32! *fp32!", allow_tf32=False, name="dot_allow_no_tf32")
@triton.jit
def dots_by_old_name(a, b, c, allow_tf32: tl.constexpr):
    r = tl.arange(0, 16)
    o = r[:, None] * 16 + r[None, :]
    tl.store(c + o, tl.dot(tl.load(a + o), tl.load(b + o), allow_tf32=allow_tf32))


@case("*fp8e5! *fp8e4nv! *u8! *u8! *fp32!", A="e5m2", B="e4m3", name="dot_scaled_fp8")
@case("*fp16! *fp8e4nv! *u8! *u8! *fp32!", A="fp16", B="e4m3", name="dot_scaled_fp16")
@case("*bf16! *fp8e5! *u8! *u8! *fp32!", A="bf16", B="e5m2", name="dot_scaled_bf16")
@triton.jit
def dots_scaled(a, b, sa, sb, c, A: tl.constexpr, B: tl.constexpr):
    r = tl.arange(0, 128)
    k = tl.arange(0, 64)
    s = tl.arange(0, 2)
    x = tl.load(a + r[:, None] * 64 + k[None, :])
    y = tl.load(b + k[:, None] * 128 + r[None, :])
    u = tl.load(sa + r[:, None] * 2 + s[None, :])
    w = tl.load(sb + r[:, None] * 2 + s[None, :])
    if A == "fp16" or A == "bf16":  # noqa: SIM108 (a ternary would need both forms to fit)
        z = tl.dot_scaled(x, None, A, y, w, B)
    else:
        z = tl.dot_scaled(x, u, A, y, w, B)
    tl.store(c + r[:, None] * 128 + r[None, :], z)


@case("*u8! *u8! *u8! *u8! *fp32!", K_PACK=True, name="dot_scaled_fp4_k")
@case("*u8! *u8! *u8! *u8! *fp32!", K_PACK=False, name="dot_scaled_fp4_mn", binary=False)
@triton.jit
def dots_scaled_fp4(a, b, sa, sb, c, K_PACK: tl.constexpr):
    r = tl.arange(0, 128)
    h = tl.arange(0, 64)
    s = tl.arange(0, 4)
    u = tl.load(sa + r[:, None] * 4 + s[None, :])
    w = tl.load(sb + r[:, None] * 4 + s[None, :])
    if K_PACK:
        x = tl.load(a + r[:, None] * 64 + h[None, :])
        y = tl.load(b + h[:, None] * 128 + r[None, :])
    else:
        x = tl.load(a + h[:, None] * 128 + r[None, :])
        y = tl.load(b + r[:, None] * 64 + h[None, :])
    z = tl.dot_scaled(x, u, "e2m1", y, w, "e2m1", lhs_k_pack=K_PACK, rhs_k_pack=K_PACK)
    tl.store(c + r[:, None] * 128 + r[None, :], z)


@case("*fp16! *fp16! *fp16! *fp16! i32! i32! i32!")
@triton.jit
def linear_bias_gelu(x, w, bias, out, M, N, K):
    rm = tl.program_id(0) * 32 + tl.arange(0, 32)
    rn = tl.program_id(1) * 32 + tl.arange(0, 32)
    rk = tl.arange(0, 32)
    acc = tl.zeros([32, 32], tl.float32)
    for k in range(0, K, 32):
        a = tl.load(x + rm[:, None] * K + (k + rk)[None, :], mask=(rm[:, None] < M) & ((k + rk)[None, :] < K), other=0)
        b = tl.load(w + rn[None, :] * K + (k + rk)[:, None], mask=(rn[None, :] < N) & ((k + rk)[:, None] < K), other=0)
        acc += tl.dot(a, b)
    acc += tl.load(bias + rn, mask=rn < N)[None, :]
    acc = 0.5 * acc * (1.0 + tl.erf(acc * 0.7071067811865476))
    tl.store(out + rm[:, None] * N + rn[None, :], acc.to(tl.float16), mask=(rm[:, None] < M) & (rn[None, :] < N))


@case("*fp16! *i8! *fp16! *fp16! i32!")
@triton.jit
def weight_only_int8(x, w, scale, out, K):
    r = tl.arange(0, 16)
    c = tl.arange(0, 32)
    k = tl.arange(0, 32)
    acc = tl.zeros([16, 32], tl.float32)
    for start in range(0, K, 32):
        a = tl.load(x + r[:, None] * K + (start + k)[None, :])
        b = tl.load(w + (start + k)[:, None] * 32 + c[None, :]).to(tl.float16)
        acc = tl.dot(a, b, acc)
    tl.store(out + r[:, None] * 32 + c[None, :], (acc * tl.load(scale + c)[None, :]).to(tl.float16))


@case("*fp32! *fp32! *fp32! i32! i32!")
@triton.jit
def split_k(a, b, c, K, SPLIT_LEN):
    r = tl.arange(0, 32)
    k = tl.program_id(2) * SPLIT_LEN + tl.arange(0, 32)
    acc = tl.zeros([32, 32], tl.float32)
    for _ in range(0, SPLIT_LEN, 32):
        acc += tl.dot(tl.load(a + r[:, None] * K + k[None, :]), tl.load(b + k[:, None] * 32 + r[None, :]))
        k += 32
    tl.atomic_add(c + r[:, None] * 32 + r[None, :], acc, sem="relaxed")


@case("*fp16! *fp16! *fp16! i32 i32! i32! i32")
@triton.jit
def persistent_matmul(a, b, c, M, N, K, programs):
    x = tl.make_tensor_descriptor(a, [M, K], [K, 1], [32, 32])
    y = tl.make_tensor_descriptor(b, [N, K], [K, 1], [32, 32])
    z = tl.make_tensor_descriptor(c, [M, N], [N, 1], [32, 32])
    tiles_n = tl.cdiv(N, 32)
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, 32) * tiles_n, programs, flatten=True):
        acc = tl.zeros([32, 32], tl.float32)
        for k in range(0, K, 32):
            acc = tl.dot(x.load([tile // tiles_n * 32, k]), y.load([tile % tiles_n * 32, k]).T, acc)
        z.store([tile // tiles_n * 32, tile % tiles_n * 32], acc.to(tl.float16))


@case("*bf16! *bf16! *bf16! *bf16! *fp32! fp32 i32", CAUSAL=True, name="flash_causal")
@case("*bf16! *bf16! *bf16! *bf16! *fp32! fp32 i32", CAUSAL=False, name="flash_full")
@triton.jit
def flash_forward(q, k, v, out, lse, scale, N, CAUSAL: tl.constexpr):
    start = tl.program_id(0) * 32
    rm = start + tl.arange(0, 32)
    rn = tl.arange(0, 32)
    d = tl.arange(0, 64)
    base = tl.program_id(1).to(tl.int64) * N * 64
    x = tl.load(q + base + rm[:, None] * 64 + d[None, :], mask=rm[:, None] < N, other=0.0)
    m = tl.full([32], float("-inf"), tl.float32)
    total = tl.zeros([32], tl.float32)
    acc = tl.zeros([32, 64], tl.float32)
    end = start + 32 if CAUSAL else N
    for n in range(0, end, 32):
        n = tl.multiple_of(n, 32)
        y = tl.load(k + base + (n + rn)[None, :] * 64 + d[:, None], mask=(n + rn)[None, :] < N, other=0.0)
        s = tl.dot(x, y) * (scale * 1.44269504)
        if CAUSAL:
            s = tl.where(rm[:, None] >= (n + rn)[None, :], s, float("-inf"))
        s = tl.where((n + rn)[None, :] < N, s, float("-inf"))
        new = tl.maximum(m, tl.max(s, 1))
        p = tl.math.exp2(s - new[:, None])
        alpha = tl.math.exp2(m - new)
        total = total * alpha + tl.sum(p, 1)
        z = tl.load(v + base + (n + rn)[:, None] * 64 + d[None, :], mask=(n + rn)[:, None] < N, other=0.0)
        acc = tl.dot(p.to(tl.bfloat16), z, acc * alpha[:, None])
        m = new
    tl.store(lse + tl.program_id(1) * N + rm, m + tl.math.log2(total), mask=rm < N)
    tl.store(out + base + rm[:, None] * 64 + d[None, :], (acc / total[:, None]).to(tl.bfloat16), mask=rm[:, None] < N)
