"""Largest errors that are documented: CUDA C++ Programming Guide, "Mathematical Functions" (its tables for single and
double precision, in units in the last place), and the PTX ISA for single instructions.

No bound of a libdevice function is larger than in appendix E.1 of the guide, as intel/llvm repeats it in
sycl/doc/cuda/cuda-vs-opencl-math-builtin-precisions.md (commit 3216a58). Smaller than there are those of sinpi, cospi,
asin, acos, pow and tgamma for fp32: an H200 keeps to less. Of jn and yn the guide bounds the absolute error alone, for
n = 128. The bounds of `fast_` functions are those of the guide's section on intrinsics, and were not looked up again.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Function:
    """A function, the largest documented error of each type, and where it is measured."""

    name: str
    bounds: dict[str, float]
    ranges: list[tuple[float, float]] = field(default_factory=lambda: [(-20.0, 20.0)])
    operands: int = 1
    triton: bool = False
    integer_first: bool = False
    integer_last: bool = False
    absolute: float = 0.0


def both(single: float, double: float) -> dict[str, float]:
    """Bounds of libdevice's two forms. The emulator's own error, below one unit, comes on top."""
    return {"fp32": single, "fp64": double}


POSITIVE = [(1e-6, 1e6)]
UNIT = [(-1.0, 1.0)]
FUNCTIONS = [
    # Triton's own lowering: exp is ex2.approx of a product, whose error grows with the exponent; sqrt and rsqrt are
    # approximate instructions for fp32; sin, cos, log and erf are libdevice's.
    Function("exp", {"fp32": 2 + 1.16 * 20, "fp64": 1}, triton=True),
    Function("exp2", both(2, 1), triton=True),
    Function("log", both(1, 1), POSITIVE, triton=True),
    Function("log2", both(1, 1), POSITIVE, triton=True),
    Function("sin", both(2, 1), [(-1e4, 1e4)], triton=True),
    Function("cos", both(2, 1), [(-1e4, 1e4)], triton=True),
    Function("sqrt", {"fp32": 1}, POSITIVE, triton=True),
    Function("rsqrt", both(2, 1), POSITIVE, triton=True),
    Function("erf", both(2, 2), [(-4.0, 4.0)], triton=True),
    Function("sigmoid", {"fp32": 2 + 1.16 * 20 + 3, "fp64": 3}, triton=True),
    # libdevice
    Function("exp", both(2, 1), [(-80.0, 80.0)]),
    Function("exp2", both(2, 1), [(-120.0, 120.0)]),
    Function("exp10", both(2, 1), [(-35.0, 35.0)]),
    Function("expm1", both(1, 1), [(-10.0, 80.0)]),
    Function("log", both(1, 1), POSITIVE),
    Function("log2", both(1, 1), POSITIVE),
    Function("log10", both(2, 1), POSITIVE),
    Function("log1p", both(1, 1), [(-0.999, 1e6)]),
    Function("sin", both(2, 1), [(-1e5, 1e5)]),
    Function("cos", both(2, 1), [(-1e5, 1e5)]),
    Function("tan", both(4, 2), [(-1e4, 1e4)]),
    Function("sinpi", both(1, 1), [(-1e3, 1e3)]),
    Function("cospi", both(1, 1), [(-1e3, 1e3)]),
    Function("asin", both(2, 2), UNIT),
    Function("acos", both(2, 1), UNIT),
    Function("atan", both(2, 2)),
    Function("atan2", both(3, 2), operands=2),
    Function("sinh", both(3, 1)),
    Function("cosh", both(2, 1)),
    Function("tanh", both(2, 1), [(-10.0, 10.0)]),
    Function("asinh", both(3, 2)),
    Function("acosh", both(4, 2), [(1.0, 1e6)]),
    Function("atanh", both(3, 2), [(-0.9999, 0.9999)]),
    Function("pow", both(4, 2), [(1e-3, 1e3), (-8.0, 8.0)], 2),
    Function("rsqrt", both(2, 1), POSITIVE),
    Function("cbrt", both(1, 1), [(-1e6, 1e6)]),
    Function("rcbrt", both(1, 1), [(-1e6, 1e6)]),
    Function("hypot", both(3, 2), operands=2),
    Function("rhypot", both(2, 1), operands=2),
    Function("norm3d", both(3, 2), operands=3),
    Function("rnorm3d", both(2, 1), operands=3),
    Function("norm4d", both(3, 2), operands=4),
    Function("rnorm4d", both(2, 1), operands=4),
    Function("erf", both(2, 2), [(-5.0, 5.0)]),
    Function("erfc", both(4, 4), [(-5.0, 8.0)]),
    Function("erfcx", both(4, 3), [(-5.0, 30.0)]),
    Function("erfinv", both(2, 5), [(-0.9999, 0.9999)]),
    Function("erfcinv", both(2, 6), [(1e-4, 1.9999)]),
    Function("normcdf", both(5, 5), [(-8.0, 8.0)]),
    Function("normcdfinv", both(5, 7), [(1e-4, 0.9999)]),
    Function("lgamma", both(6, 4), [(0.01, 100.0)]),
    Function("tgamma", both(5, 8), [(0.01, 30.0)]),
    Function("j0", both(9, 7), [(0.0, 8.0)], absolute=2.2e-6),
    Function("j1", both(9, 7), [(0.0, 8.0)], absolute=2.2e-6),
    Function("y0", both(9, 7), [(0.05, 8.0)], absolute=2.2e-6),
    Function("y1", both(9, 7), [(0.05, 8.0)], absolute=2.2e-6),
    Function("jn", both(16, 16), [(0, 8), (0.1, 20.0)], 2, integer_first=True, absolute=2.2e-6),
    Function("yn", both(16, 16), [(0, 4), (1.0, 20.0)], 2, integer_first=True, absolute=2.2e-6),
    Function("cyl_bessel_i0", both(6, 6), [(-10.0, 10.0)]),
    Function("cyl_bessel_i1", both(6, 6), [(-10.0, 10.0)]),
    Function("ldexp", both(0, 0), [(-8.0, 8.0), (-100, 100)], 2, integer_last=True),
    Function("scalbn", both(0, 0), [(-8.0, 8.0), (-100, 100)], 2, integer_last=True),
    Function("fast_sinf", {"fp32": 2}, [(-3.14159, 3.14159)], absolute=2**-21.41),
    Function("fast_cosf", {"fp32": 2}, [(-3.14159, 3.14159)], absolute=2**-21.19),
    Function("fast_expf", {"fp32": 2 + 1.16 * 20}),
    Function("fast_exp10f", {"fp32": 2 + 2.95 * 20}),
    Function("fast_logf", {"fp32": 3}, POSITIVE, absolute=2**-21.41),
    Function("fast_log2f", {"fp32": 2}, POSITIVE, absolute=2**-22),
    Function("fast_log10f", {"fp32": 3}, POSITIVE, absolute=2**-22),
    Function("fast_dividef", {"fp32": 2}, operands=2),
]  # fmt: skip

# name, instruction, type, units in the last place, absolute error, range
INSTRUCTIONS = [
    ("ex2", "ex2.approx.ftz.f32", "fp32", 2, 0.0, -100.0, 100.0),
    ("lg2", "lg2.approx.f32", "fp32", 2, 2**-22, 1e-6, 1e6),
    ("rcp", "rcp.approx.ftz.f32", "fp32", 1, 0.0, -1e3, 1e3),
    ("rsqrt", "rsqrt.approx.f32", "fp32", 2, 0.0, 1e-6, 1e6),
    ("sqrt", "sqrt.approx.f32", "fp32", 1, 0.0, 1e-6, 1e6),
    ("sin", "sin.approx.f32", "fp32", 0, 2**-20.5, -3.14159, 3.14159),
    ("cos", "cos.approx.f32", "fp32", 0, 2**-20.5, -3.14159, 3.14159),
    ("tanh", "tanh.approx.f32", "fp32", 2**13, 0.0, -8.0, 8.0),  # a relative error of 2^-11
    ("tanh_f16x2", "tanh.approx.f16x2", "fp16", 1, 2**-10.987, -8.0, 8.0),
    ("ex2_f16x2", "ex2.approx.f16x2", "fp16", 2, 0.0, -10.0, 10.0),
]

_ROUND = ("rn", "rz", "rd", "ru")


def _exact() -> list[tuple[str, list[str], str]]:
    cases = []
    for dtype in ("fp32", "fp64"):
        for name in ("floor", "ceil", "trunc", "rint", "nearbyint", "round", "abs", "logb", "sqrt"):
            if not (name == "sqrt" and dtype == "fp32"):
                cases.append((name, [dtype], dtype))
        for name in ("fmod", "remainder", "copysign", "nextafter", "fdim"):
            cases.append((name, [dtype] * 2, dtype))
        cases += [("fma", [dtype] * 3, dtype), ("llrint", [dtype], "i64"), ("llround", [dtype], "i64")]
        cases += [("ilogb", [dtype], "i32"), ("isnan", [dtype], "i1"), ("isinf", [dtype], "i1")]
        cases += [("signbit", [dtype], "i32")]
        for way in _ROUND:
            cases += [(f"{name}_{way}", [dtype] * 2, dtype) for name in ("add", "sub", "mul", "div")]
            cases += [(f"{name}_{way}", [dtype], dtype) for name in ("sqrt", "rcp")]
            cases += [(f"fma_{way}", [dtype] * 3, dtype)]
            source = "float" if dtype == "fp32" else "double"
            for target, out in {"int": "i32", "uint": "i32", "ll": "i64", "ull": "i64"}.items():
                cases += [(f"{source}2{target}_{way}", [dtype], out)]
    for way in _ROUND:
        for source, kind in {"int": "i32", "uint": "u32", "ll": "i64", "ull": "u64"}.items():
            cases += [(f"{source}2float_{way}", [kind], "fp32")]
            if source in ("ll", "ull"):
                cases += [(f"{source}2double_{way}", [kind], "fp64")]
        cases += [(f"double2float_{way}", ["fp64"], "fp32")]
    for name, kind in {"clz": "i32", "popc": "i32", "ffs": "i32", "brev": "i32", "abs": "i32"}.items():
        cases += [(name, [kind], "i32"), (name, ["i64"], "i32" if name in ("clz", "popc", "ffs") else "i64")]
    for name in ("mulhi", "mul24", "hadd", "rhadd"):
        cases += [(name, [kind] * 2, kind) for kind in ("i32", "u32")]
    cases += [("mulhi", ["i64"] * 2, "i64"), ("mulhi", ["u64"] * 2, "u64")]
    cases += [("sad", ["i32", "i32", "u32"], "i32"), ("sad", ["u32"] * 3, "u32"), ("byte_perm", ["i32"] * 3, "i32")]
    cases += [("int2double_rn", ["i32"], "fp64"), ("uint2double_rn", ["u32"], "fp64")]
    cases += [("hiloint2double", ["i32"] * 2, "fp64"), ("double2hiint", ["fp64"], "i32")]
    cases += [("double2loint", ["fp64"], "i32"), ("saturatef", ["fp32"], "fp32"), ("finitef", ["fp32"], "i1")]
    cases += [("isfinited", ["fp64"], "i1"), ("float_as_int", ["fp32"], "i32"), ("int_as_float", ["i32"], "fp32")]
    return cases


EXACT = _exact()
