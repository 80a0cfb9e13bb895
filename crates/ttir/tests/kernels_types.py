"""Kernels over all element types: arithmetic, comparisons, casts, constants, bits. See `kernels.py`."""

import triton
import triton.language as tl
from kernels import case

SIGNED = ("i8", "i16", "i32", "i64")
UNSIGNED = ("u8", "u16", "u32", "u64")
FLOATS = ("fp16", "bf16", "fp32", "fp64")


def each(kinds, signature, prefix, **constexprs):
    """One case for each type, which stands for T in the signature."""

    def register(fn):
        for kind in kinds:
            case(signature.replace("T", kind), name=f"{prefix}_{kind}", **constexprs)(fn)
        return fn

    return register


@each(SIGNED + UNSIGNED, "*T! *T! *T!", "integers")
@triton.jit
def integers(x, y, out):
    o = tl.arange(0, 64)
    a = tl.load(x + o)
    b = tl.load(y + o)
    r = a + b - a * b + a // b + a % b
    r += (a & b) | (a ^ b)
    r = tl.where(a < b, r << 2, r >> 3) + tl.minimum(a, b) - tl.maximum(a, -b)
    r = tl.where((a == b) | (a >= b) & (a != 5), ~r, tl.abs(r))
    tl.store(out + o, r)


@each(FLOATS, "*T! *T! *T!", "floats")
@triton.jit
def floats(x, y, out):
    o = tl.arange(0, 64)
    a = tl.load(x + o)
    b = tl.load(y + o)
    r = a + b * a - a / b + (-a)
    r = tl.where((a < b) | (a >= 2 * b), tl.minimum(a, r), tl.maximum(b, r))
    r = tl.where((a == b) & (a != r), tl.abs(r), r % b)
    tl.store(out + o, r)


@each(SIGNED + UNSIGNED, "*T! *fp32! *fp16! *bf16! *fp64!", "to_floats")
@triton.jit
def to_floats(x, f, h, b, d):
    o = tl.arange(0, 32)
    v = tl.load(x + o)
    tl.store(f + o, v.to(tl.float32))
    tl.store(h + o, v.to(tl.float16))
    tl.store(b + o, v.to(tl.bfloat16))
    tl.store(d + o, v.to(tl.float64))


@each(FLOATS, "*T! *i8! *u8! *i16! *u16! *i32! *u32! *i64! *u64! *i1!", "to_integers")
@triton.jit
def to_integers(x, i8, u8, i16, u16, i32, u32, i64, u64, i1):
    o = tl.arange(0, 32)
    v = tl.load(x + o)
    tl.store(i8 + o, v.to(tl.int8))
    tl.store(u8 + o, v.to(tl.uint8))
    tl.store(i16 + o, v.to(tl.int16))
    tl.store(u16 + o, v.to(tl.uint16))
    tl.store(i32 + o, v.to(tl.int32))
    tl.store(u32 + o, v.to(tl.uint32))
    tl.store(i64 + o, v.to(tl.int64))
    tl.store(u64 + o, v.to(tl.uint64))
    tl.store(i1 + o, v.to(tl.int1))


@each(SIGNED + UNSIGNED, "*T! *i8! *u16! *i32! *u64! *i1!", "between_integers")
@triton.jit
def between_integers(x, i8, u16, i32, u64, i1):
    o = tl.arange(0, 32)
    v = tl.load(x + o)
    tl.store(i8 + o, v.to(tl.int8))
    tl.store(u16 + o, v.to(tl.uint16))
    tl.store(i32 + o, v.to(tl.int32))
    tl.store(u64 + o, v.to(tl.uint64))
    tl.store(i1 + o, v.to(tl.int1))


@each(FLOATS, "*T! *fp16! *bf16! *fp32! *fp64!", "between_floats")
@triton.jit
def between_floats(x, h, b, f, d):
    o = tl.arange(0, 32)
    v = tl.load(x + o)
    tl.store(h + o, v.to(tl.float16))
    tl.store(b + o, v.to(tl.bfloat16))
    tl.store(f + o, v.to(tl.float32))
    tl.store(d + o, v.to(tl.float64))


@case("*fp32! *fp16! *bf16! *fp8e5!")
@triton.jit
def truncating_casts(f, h, b, e):
    o = tl.arange(0, 32)
    v = tl.load(f + o)
    tl.store(h + o, v.to(tl.float16, fp_downcast_rounding="rtz"))
    tl.store(b + o, v.to(tl.bfloat16, fp_downcast_rounding="rtz"))
    tl.store(e + o, v.to(tl.float8e5, fp_downcast_rounding="rtz"))


@case("*fp64! *fp32! *fp16! *bf16! *fp8e4nv! *fp8e5!", binary=False)
@triton.jit
def casts_of_doubles(d, f, h, b, e, g):
    o = tl.arange(0, 32)
    w = tl.load(d + o)
    tl.store(f + o, w.to(tl.float32, fp_downcast_rounding="rtz"))
    tl.store(h + o, w.to(tl.float16, fp_downcast_rounding="rtz"))
    tl.store(b + o, w.to(tl.bfloat16, fp_downcast_rounding="rtz"))
    tl.store(e + o, w.to(tl.float8e4nv))
    tl.store(d + o, tl.load(e + o).to(tl.float64) + tl.load(g + o).to(tl.float64))
    tl.store(g + o, tl.load(e + o).to(tl.float8e5))
    tl.store(e + o, tl.load(g + o).to(tl.float8e4nv))


@case("*fp8e4nv! *fp32! *fp16! *bf16!", name="fp8_e4nv")
@case("*fp8e5! *fp32! *fp16! *bf16!", name="fp8_e5")
@triton.jit
def fp8_casts(x, f, h, b):
    o = tl.arange(0, 64)
    v = tl.load(x + o)
    tl.store(f + o, v.to(tl.float32))
    tl.store(h + o, v.to(tl.float16))
    tl.store(b + o, v.to(tl.bfloat16))
    tl.store(x + o, tl.load(f + o).to(x.dtype.element_ty))
    tl.store(x + o, tl.load(h + o).to(x.dtype.element_ty))
    tl.store(x + o, tl.load(b + o).to(x.dtype.element_ty))


@case("*fp8e4nv! *fp8e5! *u8!")
@triton.jit
def fp8_arithmetic(x, y, bits):
    o = tl.arange(0, 64)
    a = tl.load(x + o)
    b = tl.load(y + o)
    tl.store(x + o, (b.to(tl.float16) + 1.0).to(tl.float8e4nv))
    tl.store(y + o, (a.to(tl.float32) * b.to(tl.float32)).to(tl.float8e5))
    tl.store(bits + o, a.to(tl.uint8, bitcast=True) ^ b.to(tl.uint8, bitcast=True))
    tl.store(x + o, (tl.load(bits + o) & 0x77).to(tl.float8e4nv, bitcast=True))


@case("*fp32! *i32! *fp64! *i64! *fp16! *i16! *bf16! *u16!")
@triton.jit
def bitcasts(f, i, d, w, h, s, b, u):
    o = tl.arange(0, 32)
    tl.store(i + o, tl.load(f + o).to(tl.int32, bitcast=True) & 0x7FFFFFFF)
    tl.store(f + o, tl.load(i + o).to(tl.float32, bitcast=True))
    tl.store(w + o, tl.load(d + o).to(tl.int64, bitcast=True) >> 52)
    tl.store(d + o, tl.load(w + o).to(tl.float64, bitcast=True))
    tl.store(s + o, tl.load(h + o).to(tl.int16, bitcast=True))
    tl.store(u + o, tl.load(b + o).to(tl.uint16, bitcast=True) + tl.load(h + o).to(tl.uint16, bitcast=True))
    tl.store(b + o, tl.load(h + o).to(tl.bfloat16, bitcast=True))


@case("*i1! *i1! *i32!")
@triton.jit
def booleans(x, y, out):
    o = tl.arange(0, 64)
    a = tl.load(x + o)
    b = tl.load(y + o)
    tl.store(x + o, (a & b) | (~a ^ b))
    tl.store(out + o, a.to(tl.int32) + (a == b).to(tl.int32) + (a < b).to(tl.int32) + a.to(tl.int8) + (a != b))
    tl.store(y + o, tl.where(a, b, not True))


@case("*i8! *i16! *i32! *i64! *fp32! *fp64!")
@triton.jit
def promotion(i8, i16, i32, i64, f32, f64):
    o = tl.arange(0, 32)
    a = tl.load(i8 + o)
    b = tl.load(i16 + o)
    c = tl.load(i32 + o)
    d = tl.load(i64 + o)
    e = tl.load(f32 + o)
    tl.store(i16 + o, a + b)
    tl.store(i32 + o, b * c)
    tl.store(i64 + o, c + d)
    tl.store(f32 + o, a / b + d * e)
    tl.store(f64 + o, e + tl.load(f64 + o) * c)


@case("*i32! i32 i32 i64 u32")
@triton.jit
def scalar_integers(out, n, m, w, u):
    r = n // m + n % m - n * m + (n << 3) + (m >> 1) + tl.cdiv(n, m) + tl.cdiv(m, 16)
    r += tl.minimum(n, m) + tl.maximum(n, 7) + tl.abs(n) + (w // n).to(tl.int32) + (u % 7).to(tl.int32)
    r = tl.where(n > m, r, -r) + tl.umulhi(n, m)
    tl.store(out, r)
    tl.store(out + 1, (w * n + u).to(tl.int32))
    tl.store(out + 2, min(n, m) + max(n, 3))


@case("*fp32! fp32 fp64 fp16 bf16")
@triton.jit
def scalar_floats(out, a, b, c, d):
    r = a * 2 + 1 / a - c + d
    r = tl.maximum(r, tl.sqrt(a)) + tl.exp(a) + tl.cos(a)
    tl.store(out, r + b.to(tl.float32))
    tl.store(out + 1, tl.where(a > 0, r, 0.0))
    tl.store(out + 2, max(a, 1.0))


@case("*i32! *i64! *u32!")
@triton.jit
def overflow(x, y, u):
    o = tl.arange(0, 32)
    a = tl.load(x + o)
    tl.store(x + o, a * a * 0x7FFFFFFF + a - 2147483647 - 2)
    tl.store(y + o, tl.load(y + o) * 0x7FFFFFFFFFFFFFFF + (a * a))
    tl.store(u + o, tl.load(u + o) * 0xFFFFFFFF - 1)


@case("*i32! *i32! *i32!", options={"debug": True, "sanitize_overflow": True})
@triton.jit
def overflow_checked(x, y, out):
    o = tl.arange(0, 32)
    a = tl.load(x + o)
    b = tl.load(y + o)
    tl.store(out + o, a * b + a - b)


@case("*i32! *i64!")
@triton.jit
def shifts(x, y):
    o = tl.arange(0, 64)
    a = tl.load(x + o)
    tl.store(x + o, (a << o) + (a >> o) + (a.to(tl.uint32) >> o).to(tl.int32) + (1 << (o % 32)))
    tl.store(y + o, (tl.load(y + o) << o) + (tl.load(y + o) >> (o + 1)))


@case("*u32! *u64! *i32! *i64!")
@triton.jit
def high_products(u, w, i, j):
    o = tl.arange(0, 32)
    tl.store(u + o, tl.umulhi(tl.load(u + o), tl.load(u + o) + 1))
    tl.store(w + o, tl.umulhi(tl.load(w + o), tl.load(w + o) + 1))
    tl.store(i + o, tl.umulhi(tl.load(i + o), 0x7FFFFFFF))
    tl.store(j + o, tl.math.umulhi(tl.load(j + o), tl.load(j + o)))


@case("*fp16! *bf16! *fp32! *fp64! *i8! *u64!")
@triton.jit
def constants_of_types(h, b, f, d, i, u):
    o = tl.arange(0, 8)
    tl.store(h + o, tl.full([8], 65504.0, tl.float16))
    tl.store(h + o, tl.full([8], 6e-8, tl.float16))
    tl.store(b + o, tl.full([8], 3.3895e38, tl.bfloat16))
    tl.store(b + o, tl.full([8], float("-inf"), tl.bfloat16))
    tl.store(f + o, tl.full([8], 1e-45, tl.float32))
    tl.store(f + o, tl.full([8], 3.4028234663852886e38, tl.float32))
    tl.store(d + o, tl.full([8], 5e-324, tl.float64))
    tl.store(d + o, tl.full([8], float("nan"), tl.float64))
    tl.store(i + o, tl.full([8], -128, tl.int8))
    tl.store(u + o, tl.full([8], 0xFFFFFFFFFFFFFFFF, tl.uint64))
    tl.store(f + o, tl.zeros([8], tl.float32) + tl.zeros_like(tl.load(f + o)))


@case("*fp32! *fp32! *fp16! *fp64!")
@triton.jit
def nan_propagation(x, y, h, d):
    o = tl.arange(0, 32)
    a = tl.load(x + o)
    b = tl.load(y + o)
    r = tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL) + tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)
    r += tl.clamp(a, b, b + 1.0, propagate_nan=tl.PropagateNan.ALL) + tl.clamp(a, -1.0, 1.0)
    tl.store(x + o, r)
    v = tl.load(h + o)
    tl.store(h + o, tl.maximum(v, 0.5, propagate_nan=tl.PropagateNan.ALL) + tl.clamp(v, v - 1, v + 1))
    w = tl.load(d + o)
    tl.store(d + o, tl.minimum(w, 1.0, propagate_nan=tl.PropagateNan.ALL) + tl.clamp(w, 0.0, 1.0))
