"""Kernels over functions: mathematics, libdevice, inline assembly, random numbers. See `kernels.py`."""

import triton
import triton.language as tl
from kernels import case
from kernels_types import each
from triton.language.extra import libdevice


@each(("fp32", "fp64"), "*T! *T!", "functions")
@triton.jit
def functions(x, out):
    o = tl.arange(0, 64)
    v = tl.load(x + o)
    r = tl.exp(v) + tl.exp2(v) + tl.log(v) + tl.log2(v) + tl.sin(v) + tl.cos(v) + tl.sqrt(v) + tl.rsqrt(v)
    r += tl.floor(v) + tl.ceil(v) + tl.erf(v) + tl.abs(v) + tl.fma(v, r, v) + tl.sigmoid(v)
    tl.store(out + o, r)


@each(("fp16", "bf16"), "*T! *T!", "half_functions")
@triton.jit
def half_functions(x, out):
    o = tl.arange(0, 64)
    v = tl.load(x + o)
    r = tl.fma(v, v, v) + tl.abs(v) + tl.maximum(v, 0) + tl.sigmoid(v.to(tl.float32)).to(v.dtype)
    tl.store(out + o, r + tl.exp(v.to(tl.float32)).to(v.dtype))


@case("*fp32! *fp32!")
@triton.jit
def tensor_methods(x, out):
    o = tl.arange(0, 64)
    v = tl.load(x + o)
    r = v.exp() + v.exp2() + v.log() + v.log2() + v.sin() + v.cos() + v.sqrt() + v.rsqrt() + v.sqrt_rn()
    r += v.floor() + v.ceil() + v.erf() + v.abs() + v.sigmoid() + v.cast(tl.float32) + v.softmax(0)
    m = v.reshape([8, 8])
    r += m.T.ravel() + m.trans(1, 0).ravel() + m.permute(1, 0).view([64]) + v.flip(0)
    r += v.cumsum(0) + v.cumprod(0) + v.sum(0) + v.max(0) + v.min(0) + v.argmax(0) + v.argmin(0)
    r += m.sum(1).expand_dims(1).broadcast_to(8, 8).ravel() + v.gather(o, 0)
    tl.store(out + o, r)
    i = v.to(tl.int32)
    tl.store(out + tl.arange(0, 64), (i.histogram(64) + i.xor_sum(0) + i.reduce_or(0) + i.cdiv(3)).to(tl.float32))


@triton.jit
def _add(a, b):
    return a + b


@case("*fp32! *i32!")
@triton.jit
def pointer_methods(x, out):
    o = tl.arange(0, 32)
    v = tl.load(x + o)
    (x + o).store(v.reduce(0, _add) + v.associative_scan(0, _add))
    p = out + o
    p.atomic_add(1)
    p.atomic_max(2)
    p.atomic_min(3)
    p.atomic_and(4)
    p.atomic_or(5)
    p.atomic_xor(6)
    p.atomic_xchg(7)
    p.atomic_cas(o, o)
    lo, hi = v.reshape([16, 2]).split()
    tl.store(x + tl.arange(0, 16), lo + hi, mask=(v > 0).sum(0) > 3)


@case("*fp32! *fp32! *fp32!")
@triton.jit
def accurate_division(x, y, out):
    o = tl.arange(0, 32)
    a = tl.load(x + o)
    b = tl.load(y + o)
    tl.store(out + o, tl.div_rn(a, b) + tl.sqrt_rn(a) + tl.fdiv(a, b, ieee_rounding=True) + tl.math.div_rn(b, a))


@case("*fp32! *fp32!", name="libdevice_exponentials_fp32")
@case("*fp64! *fp64!", name="libdevice_exponentials_fp64")
@triton.jit
def libdevice_exponentials(x, out):
    o = tl.arange(0, 32)
    v = tl.load(x + o)
    r = libdevice.exp(v) + libdevice.exp2(v) + libdevice.exp10(v) + libdevice.expm1(v) + libdevice.log(v)
    r += libdevice.log2(v) + libdevice.log10(v) + libdevice.log1p(v) + libdevice.logb(v) + libdevice.pow(v, r)
    r += libdevice.sqrt(v) + libdevice.rsqrt(v) + libdevice.cbrt(v) + libdevice.rcbrt(v) + libdevice.hypot(v, r)
    r += libdevice.rhypot(v, r) + libdevice.norm3d(v, r, v) + libdevice.rnorm3d(v, r, v)
    r += libdevice.norm4d(v, r, v, r) + libdevice.rnorm4d(v, r, v, r)
    tl.store(out + o, r)


@case("*fp32! *fp32!", name="libdevice_trigonometry_fp32")
@case("*fp64! *fp64!", name="libdevice_trigonometry_fp64")
@triton.jit
def libdevice_trigonometry(x, out):
    o = tl.arange(0, 32)
    v = tl.load(x + o)
    r = libdevice.sin(v) + libdevice.cos(v) + libdevice.tan(v) + libdevice.sinpi(v) + libdevice.cospi(v)
    r += libdevice.asin(v) + libdevice.acos(v) + libdevice.atan(v) + libdevice.atan2(v, r)
    r += libdevice.sinh(v) + libdevice.cosh(v) + libdevice.tanh(v)
    r += libdevice.asinh(v) + libdevice.acosh(v) + libdevice.atanh(v)
    tl.store(out + o, r)


@case("*fp32! *fp32! *i32!", name="libdevice_special_fp32")
@case("*fp64! *fp64! *i32!", name="libdevice_special_fp64")
@triton.jit
def libdevice_special(x, out, n):
    o = tl.arange(0, 32)
    v = tl.load(x + o)
    i = tl.load(n + o)
    r = libdevice.erf(v) + libdevice.erfc(v) + libdevice.erfcx(v) + libdevice.erfinv(v) + libdevice.erfcinv(v)
    r += libdevice.normcdf(v) + libdevice.normcdfinv(v) + libdevice.lgamma(v) + libdevice.tgamma(v)
    r += libdevice.j0(v) + libdevice.j1(v) + libdevice.jn(i, v) + libdevice.y0(v) + libdevice.y1(v)
    r += libdevice.yn(i, v) + libdevice.cyl_bessel_i0(v) + libdevice.cyl_bessel_i1(v)
    r += libdevice.ldexp(v, i) + libdevice.scalbn(v, i) + libdevice.pow(v, i)
    tl.store(out + o, r)
    tl.store(n + o, libdevice.ilogb(v))


@case("*fp32! *fp32! *i64! *i32!", name="libdevice_rounding_fp32")
@case("*fp64! *fp64! *i64! *i32!", name="libdevice_rounding_fp64")
@triton.jit
def libdevice_rounding(x, out, w, n):
    o = tl.arange(0, 32)
    v = tl.load(x + o)
    r = libdevice.floor(v) + libdevice.ceil(v) + libdevice.trunc(v) + libdevice.rint(v) + libdevice.nearbyint(v)
    r += libdevice.round(v) + libdevice.abs(v) + libdevice.fmod(v, r) + libdevice.remainder(v, r)
    r += libdevice.copysign(v, r) + libdevice.nextafter(v, r) + libdevice.fdim(v, r) + libdevice.fma(v, r, v)
    tl.store(out + o, r)
    tl.store(w + o, libdevice.llrint(v) + libdevice.llround(v))
    tl.store(n + o, libdevice.isnan(v) + libdevice.isinf(v) + libdevice.signbit(v))


@case("*fp32! *fp32!", name="libdevice_directed_fp32")
@case("*fp64! *fp64!", name="libdevice_directed_fp64")
@triton.jit
def libdevice_directed(x, out):
    o = tl.arange(0, 32)
    v = tl.load(x + o)
    w = tl.load(out + o)
    r = libdevice.add_rn(v, w) + libdevice.add_rz(v, w) + libdevice.add_rd(v, w) + libdevice.add_ru(v, w)
    r += libdevice.sub_rn(v, w) + libdevice.sub_rz(v, w) + libdevice.sub_rd(v, w) + libdevice.sub_ru(v, w)
    r += libdevice.mul_rn(v, w) + libdevice.mul_rz(v, w) + libdevice.mul_rd(v, w) + libdevice.mul_ru(v, w)
    r += libdevice.div_rn(v, w) + libdevice.div_rz(v, w) + libdevice.div_rd(v, w) + libdevice.div_ru(v, w)
    r += libdevice.fma_rn(v, w, r) + libdevice.fma_rz(v, w, r) + libdevice.fma_rd(v, w, r) + libdevice.fma_ru(v, w, r)
    r += libdevice.sqrt_rn(v) + libdevice.sqrt_rz(v) + libdevice.sqrt_rd(v) + libdevice.sqrt_ru(v)
    r += libdevice.rcp_rn(v) + libdevice.rcp_rz(v) + libdevice.rcp_rd(v) + libdevice.rcp_ru(v)
    tl.store(out + o, r)


@case("*fp32! *fp32! *fp64! *i32!")
@triton.jit
def libdevice_of_one_type(x, out, d, n):
    o = tl.arange(0, 32)
    v = tl.load(x + o)
    r = libdevice.fast_sinf(v) + libdevice.fast_cosf(v) + libdevice.fast_tanf(v) + libdevice.fast_expf(v)
    r += libdevice.fast_exp10f(v) + libdevice.fast_logf(v) + libdevice.fast_log2f(v) + libdevice.fast_log10f(v)
    r += libdevice.fast_powf(v, r) + libdevice.fast_dividef(v, r) + libdevice.saturatef(v) + libdevice.rsqrt_rn(v)
    tl.store(out + o, r)
    tl.store(n + o, libdevice.finitef(v) + libdevice.isfinited(tl.load(d + o)))
    tl.store(d + o, libdevice.rcp64h(tl.load(d + o)))


@case("*fp32! *i32! *i64!", name="libdevice_float2int")
@triton.jit
def libdevice_float2int(f, i, w):
    o = tl.arange(0, 32)
    v = tl.load(f + o)
    r = libdevice.float2int_rn(v) + libdevice.float2int_rz(v) + libdevice.float2int_rd(v) + libdevice.float2int_ru(v)
    r += libdevice.float2uint_rn(v) + libdevice.float2uint_rz(v) + libdevice.float2uint_rd(v)
    r += libdevice.float2uint_ru(v) + libdevice.float_as_int(v) + libdevice.float_as_uint(v)
    s = libdevice.float2ll_rn(v) + libdevice.float2ll_rz(v) + libdevice.float2ll_rd(v) + libdevice.float2ll_ru(v)
    s += libdevice.float2ull_rn(v) + libdevice.float2ull_rz(v) + libdevice.float2ull_rd(v) + libdevice.float2ull_ru(v)
    tl.store(i + o, r)
    tl.store(w + o, s)


@case("*fp64! *i32! *i64! *fp32!")
@triton.jit
def libdevice_double2int(d, i, w, f):
    o = tl.arange(0, 32)
    v = tl.load(d + o)
    r = libdevice.double2int_rn(v) + libdevice.double2int_rz(v) + libdevice.double2int_rd(v)
    r += libdevice.double2int_ru(v) + libdevice.double2uint_rn(v) + libdevice.double2uint_rz(v)
    r += libdevice.double2uint_rd(v) + libdevice.double2uint_ru(v) + libdevice.double2loint(v)
    r += libdevice.double2hiint(v)
    s = libdevice.double2ll_rn(v) + libdevice.double2ll_rz(v) + libdevice.double2ll_rd(v) + libdevice.double2ll_ru(v)
    s += libdevice.double2ull_rn(v) + libdevice.double2ull_rz(v) + libdevice.double2ull_rd(v)
    s += libdevice.double2ull_ru(v) + libdevice.double_as_longlong(v)
    t = libdevice.double2float_rn(v) + libdevice.double2float_rz(v) + libdevice.double2float_rd(v)
    tl.store(i + o, r)
    tl.store(w + o, s)
    tl.store(f + o, t + libdevice.double2float_ru(v))


@case("*i32! *u32! *i64! *u64! *fp32! *fp64!")
@triton.jit
def libdevice_int2float(i, u, w, x, f, d):
    o = tl.arange(0, 32)
    a = tl.load(i + o)
    b = tl.load(u + o)
    c = tl.load(w + o)
    e = tl.load(x + o)
    r = libdevice.int2float_rn(a) + libdevice.int2float_rz(a) + libdevice.int2float_rd(a) + libdevice.int2float_ru(a)
    r += libdevice.uint2float_rn(b) + libdevice.uint2float_rz(b) + libdevice.uint2float_rd(b)
    r += libdevice.uint2float_ru(b) + libdevice.int_as_float(a) + libdevice.uint_as_float(b)
    r += libdevice.ll2float_rn(c) + libdevice.ll2float_rz(c) + libdevice.ll2float_rd(c) + libdevice.ll2float_ru(c)
    r += libdevice.ull2float_rn(e) + libdevice.ull2float_rz(e) + libdevice.ull2float_rd(e) + libdevice.ull2float_ru(e)
    s = libdevice.int2double_rn(a) + libdevice.uint2double_rn(b) + libdevice.hiloint2double(a, a)
    s += libdevice.ll2double_rn(c) + libdevice.ll2double_rz(c) + libdevice.ll2double_rd(c) + libdevice.ll2double_ru(c)
    s += libdevice.ull2double_rn(e) + libdevice.ull2double_rz(e) + libdevice.ull2double_rd(e)
    s += libdevice.ull2double_ru(e) + libdevice.longlong_as_double(c)
    tl.store(f + o, r)
    tl.store(d + o, s)


@case("*i32! *u32! *i64! *u64!")
@triton.jit
def libdevice_bits(i, u, w, x):
    o = tl.arange(0, 32)
    a = tl.load(i + o)
    b = tl.load(u + o)
    c = tl.load(w + o)
    r = libdevice.clz(a) + libdevice.popc(a) + libdevice.ffs(a) + libdevice.brev(a) + libdevice.abs(a)
    r += libdevice.byte_perm(a, r, 0x3254) + libdevice.mulhi(a, r) + libdevice.mul24(a, r) + libdevice.sad(a, r, b)
    r += libdevice.hadd(a, r) + libdevice.rhadd(a, r) + libdevice.clz(c) + libdevice.popc(c) + libdevice.ffs(c)
    s = libdevice.mulhi(b, b) + libdevice.mul24(b, b) + libdevice.sad(b, b + 1, b)
    s += libdevice.hadd(b, b + 1) + libdevice.rhadd(b, b + 1)
    tl.store(i + o, r)
    tl.store(u + o, s)
    tl.store(w + o, libdevice.brev(c) + libdevice.abs(c) + libdevice.mulhi(c, c))
    e = tl.load(x + o)
    tl.store(x + o, libdevice.mulhi(e, e))


@case("*u32! *i32! *fp32! i32")
@triton.jit
def philox_streams(u, i, f, seed):
    o = tl.arange(0, 32)
    a, b, c, d = tl.philox(seed, o, o + 1, o + 2, o + 3)
    tl.store(u + o, a ^ b ^ c ^ d)
    tl.store(i + o, tl.randint(seed, o, n_rounds=7))
    p, q, r, s = tl.rand4x(seed, o)
    tl.store(f + o, p + q + r + s + tl.rand(seed, o, n_rounds=6) + tl.randn(seed + 1, o))


@case("*fp16! *fp32! i64")
@triton.jit
def dropout_seeded(x, out, seed):
    o = tl.program_id(0) * 64 + tl.arange(0, 64)
    keep = tl.rand(seed, o) > 0.25
    tl.store(out + o, tl.where(keep, tl.load(x + o).to(tl.float32) / 0.75, 0.0))


@case("*fp32! *fp32!")
@triton.jit
def approximate_instructions(x, out):
    o = tl.arange(0, 64)
    v = tl.load(x + o)
    r = tl.inline_asm_elementwise("ex2.approx.ftz.f32 $0, $1;", "=f,f", [v], dtype=tl.float32, is_pure=True, pack=1)
    r += tl.inline_asm_elementwise("tanh.approx.f32 $0, $1;", "=f,f", [v], dtype=tl.float32, is_pure=True, pack=1)
    r += tl.inline_asm_elementwise("rcp.approx.ftz.f32 $0, $1;", "=r,r", [v], dtype=tl.float32, is_pure=True, pack=1)
    r += tl.inline_asm_elementwise("lg2.approx.f32 $0, $1;", "=f,f", [v], dtype=tl.float32, is_pure=True, pack=1)
    r += tl.inline_asm_elementwise("sin.approx.f32 $0, $1;", "=f,f", [v], dtype=tl.float32, is_pure=True, pack=1)
    r += tl.inline_asm_elementwise("rsqrt.approx.f32 $0, $1;", "=f,f", [v], dtype=tl.float32, is_pure=True, pack=1)
    tl.store(out + o, r)


@case("*fp16! *fp16!")
@triton.jit
def approximate_halves(x, out):
    o = tl.arange(0, 64)
    v = tl.load(x + o)
    r = tl.inline_asm_elementwise("tanh.approx.f16x2 $0, $1;", "=r,r", [v], dtype=tl.float16, is_pure=True, pack=2)
    r += tl.inline_asm_elementwise("ex2.approx.f16x2 $0, $1;", "=r,r", [v], dtype=tl.float16, is_pure=True, pack=2)
    r += tl.inline_asm_elementwise("max.f16x2 $0, $1, $2;", "=r,r,r", [v, r], dtype=tl.float16, is_pure=True, pack=2)
    r += tl.inline_asm_elementwise(
        "fma.rn.f16x2 $0, $1, $2, $3;", "=r,r,r,r", [v, r, v], dtype=tl.float16, is_pure=True, pack=2
    )
    tl.store(out + o, r)


@case("*u8! *fp16!")
@triton.jit
def unpack_int4(packed, out):
    o = tl.arange(0, 64)
    v = tl.load(packed + o)
    low, high = tl.inline_asm_elementwise(
        """
        {
            .reg .b32 t, u, c;
            mov.b32 c, 0x64006400;
            and.b32 t, $4, 0x0f0f0f0f;
            shr.u32 u, $4, 4;
            and.b32 u, u, 0x0f0f0f0f;
            prmt.b32 $0, t, 0x64646464, 0x4140;
            prmt.b32 $1, t, 0x64646464, 0x4342;
            sub.f16x2 $0, $0, c;
            sub.f16x2 $1, $1, c;
            prmt.b32 $2, u, 0x64646464, 0x4140;
            prmt.b32 $3, u, 0x64646464, 0x4342;
            sub.f16x2 $2, $2, c;
            sub.f16x2 $3, $3, c;
        }
        """,
        "=r,=r,=r,=r,r",
        [v],
        dtype=(tl.float16, tl.float16),
        is_pure=True,
        pack=4,
    )
    tl.store(out + o, low)
    tl.store(out + 64 + o, high)


@case("*i8! *bf16!")
@triton.jit
def int8_to_bf16(x, out):
    o = tl.arange(0, 64)
    v = tl.inline_asm_elementwise(
        """
        {
            .reg .b32 r0, r1, r2, r3;
            .reg .f32 f<4>;
            .reg .u32 z;
            bfe.s32 r0, $2, 0, 8;
            bfe.s32 r1, $2, 8, 8;
            bfe.s32 r2, $2, 16, 8;
            bfe.s32 r3, $2, 24, 8;
            cvt.rn.f32.s32 f0, r0;
            cvt.rn.f32.s32 f1, r1;
            cvt.rn.f32.s32 f2, r2;
            cvt.rn.f32.s32 f3, r3;
            cvt.rn.bf16x2.f32 $0, f1, f0;
            cvt.rn.bf16x2.f32 $1, f3, f2;
        }
        """,
        "=r,=r,r",
        [tl.load(x + o)],
        dtype=tl.bfloat16,
        is_pure=True,
        pack=4,
    )
    tl.store(out + o, v)


@case("*fp32! *u8!")
@triton.jit
def float_to_fp8_asm(x, out):
    o = tl.arange(0, 64)
    v = tl.inline_asm_elementwise(
        "{ .reg .b16 a; cvt.rn.satfinite.e4m3x2.f32 a, $2, $1; mov.b32 $0, {a, a}; }",
        "=r,r,r",
        [tl.load(x + o)],
        dtype=tl.uint16,
        is_pure=True,
        pack=2,
    )
    tl.store(out + o, v.to(tl.uint8))


@case("*i32! *i32! *fp32!")
@triton.jit
def predicated_assembly(x, out, f):
    o = tl.arange(0, 64)
    a = tl.load(x + o)
    r = tl.inline_asm_elementwise(
        """
        {
            .reg .pred p, q;
            .reg .b32 t;
            setp.lt.s32 p, $1, 0;
            mov.u32 $0, 0;
            @p add.s32 $0, $1, 5;
            @!p mul.lo.s32 $0, $1, 3;
            lop3.b32 t, $1, $0, 0xff, 0x96;
            setp.ne.and.b32 q, t, 0, p;
            selp.b32 $0, t, $0, q;
            bfi.b32 $0, $1, $0, 4, 8;
            mad.lo.s32 $0, $0, 3, $1;
            popc.b32 t, $0;
            clz.b32 t, t;
            brev.b32 t, t;
            add.u32 $0, $0, t;
            min.s32 $0, $0, 1000;
            max.s32 $0, $0, -1000;
            shl.b32 t, $0, 3;
            shr.s32 t, t, 1;
            xor.b32 $0, $0, t;
            not.b32 $0, $0;
        }
        """,
        "=r,r",
        [a],
        dtype=tl.int32,
        is_pure=True,
        pack=1,
    )
    tl.store(out + o, r)
    g = tl.inline_asm_elementwise(
        "{ .reg .f32 t; fma.rn.f32 t, $1, 0f40000000, $1; add.f32 t, t, 0f3F800000; neg.f32 $0, t; }",
        "=f,f",
        [tl.load(f + o)],
        dtype=tl.float32,
        is_pure=True,
        pack=1,
    )
    tl.store(f + o, g)


@case("*i64! *i32!", name="clocks_raw", raw=True)
@triton.jit
def clocks(x, y):
    o = tl.arange(0, 1)
    tl.store(x + o, tl.extra.cuda.globaltimer())
    tl.store(y + o, tl.extra.cuda.smid())
