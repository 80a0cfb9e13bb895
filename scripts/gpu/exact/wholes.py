"""Kernels of more than one operation on each element: products, reductions, scans, atomics, random numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from .cases import Case
from .types import FLOATS, TRITON, float_bits, int_bits, is_float, sample, to_double

MATRIX = "r = tl.arange(0, 64)\no = r[:, None] * 64 + r[None, :]\n"


def _matrices(dtype: str) -> Callable:
    def make(rng: np.random.Generator) -> list[np.ndarray]:
        if not is_float(dtype):
            return [int_bits(dtype, 4096, rng) for _ in range(2)]
        return [sample(dtype, -4, 4, 4096, rng) for _ in range(2)]

    return make


def _products(dtype: str) -> Callable:
    """The sum of the magnitudes that an element of a product is made of."""

    def scale(data: list[np.ndarray]) -> np.ndarray:
        a, b = (np.abs(to_double(dtype, array)).reshape(64, 64) for array in data)
        return (a @ b).ravel()

    return scale


def dots() -> Iterator[Case]:
    """Matrix products. The bound: how far 64 products in any order, accumulated in the unit's precision, may stray.

    Hopper's tensor cores add products of fp8 up with about 14 bits, unless `max_num_imprecise_acc` says otherwise.
    """
    single = 64 * 2.0**-24
    forms = [
        ("fp16", "fp32", "ieee", single), ("bf16", "fp32", "ieee", single), ("fp32", "fp32", "ieee", single),
        ("fp32", "fp32", "tf32", single), ("fp32", "fp32", "tf32x3", single), ("fp32", "fp32", "bf16x3", single),
        ("fp32", "fp32", "bf16x6", single), ("fp64", "fp64", "ieee", 64 * 2.0**-53),
        ("fp16", "fp16", "ieee", 2.0**-9), ("fp8e4nv", "fp32", "ieee", 2.0**-11), ("fp8e5", "fp32", "ieee", 2.0**-11),
    ]  # fmt: skip
    for dtype, out, precision, bound in forms:
        tl_out = {"fp32": "tl.float32", "fp64": "tl.float64", "fp16": "tl.float16"}[out]
        body = (
            f"{MATRIX}r = tl.dot(tl.load(pa + o), tl.load(pb + o), input_precision='{precision}', out_dtype={tl_out})\n"
            "tl.store(out + o, r)"
        )
        name = f"dot_{dtype}_{out}_{precision}"
        yield Case(
            name, "products", "order", f"dot, {precision}", [dtype] * 2, out, body, bound=bound,
            make=_matrices(dtype), scale=_products(dtype), whole=True, size=4096,
        )  # fmt: skip
    body = f"{MATRIX}tl.store(out + o, tl.dot(tl.load(pa + o), tl.load(pb + o), out_dtype=tl.int32))"
    yield Case(
        "dot_i8", "products", "exact", "dot", ["i8"] * 2, "i32", body, make=_matrices("i8"), whole=True, size=4096
    )


def _rows(dtype: str) -> Callable:
    def make(rng: np.random.Generator) -> list[np.ndarray]:
        if not is_float(dtype):
            return [int_bits(dtype, 4096, rng)]
        return [sample(dtype, -4, 4, 4096, rng)]

    return make


def _row_scale(dtype: str, over: int, repeat: bool) -> Callable:
    def scale(data: list[np.ndarray]) -> np.ndarray:
        total = np.abs(to_double(dtype, data[0])).reshape(64, 64).sum(over)
        return np.repeat(total, 64) if repeat else total

    return scale


def reductions() -> Iterator[Case]:
    """Sums, extrema and scans over rows."""
    for dtype in ("fp16", "bf16", "fp32", "fp64", "i8", "i32", "i64", "u16", "u32"):
        kind = "order" if is_float(dtype) else "exact"
        bound = 64 * 2.0 ** -(FLOATS[dtype][2] + 1) if is_float(dtype) else 0.0
        wide = {"i8": "i32", "u16": "u32"}.get(dtype, dtype)
        body = f"{MATRIX}tl.store(out + r, tl.sum(tl.load(pa + o), 1))"
        yield Case(
            f"sum_{dtype}", "reductions", kind, "sum", [dtype], wide, body, bound=bound, make=_rows(dtype),
            scale=_row_scale(dtype, 1, False), whole=True, size=64,
        )  # fmt: skip
        if dtype == "bf16":
            continue  # tl.cumsum of bf16 gives fp32
        body = f"{MATRIX}tl.store(out + o, tl.cumsum(tl.load(pa + o), 1).to(pa.dtype.element_ty))"
        yield Case(
            f"cumsum_{dtype}", "reductions", kind, "cumsum", [dtype], dtype, body, bound=bound, make=_rows(dtype),
            scale=_row_scale(dtype, 1, True), whole=True, size=4096,
        )  # fmt: skip
    for dtype in ("fp16", "fp32", "fp64", "i8", "i32", "u32", "i64"):
        for operation in ("max", "min", "argmax", "argmin"):
            out = "i32" if operation.startswith("arg") else {"i8": "i32"}.get(dtype, dtype)
            out = {"fp16": "fp32"}.get(dtype, out) if not operation.startswith("arg") else out
            to = ".to(tl.float32)" if out == "fp32" else ".to(tl.int32)" if out == "i32" else ""
            body = f"{MATRIX}tl.store(out + r, tl.{operation}(tl.load(pa + o), 1){to})"
            yield Case(
                f"{operation}_rows_{dtype}", "reductions", "exact", operation, [dtype], out, body, make=_few(dtype),
                whole=True, size=64,
            )  # fmt: skip
    body = f"{MATRIX}tl.store(out + r, tl.xor_sum(tl.load(pa + o), 1))"
    yield Case(
        "xor_sum_i32", "reductions", "exact", "xor_sum", ["i32"], "i32", body, make=_rows("i32"), whole=True, size=64
    )
    for dtype in ("i32", "u8", "fp32", "fp16"):
        body = f"{MATRIX}tl.store(out + o, tl.sort(tl.load(pa + o), 1))"
        yield Case(
            f"sort_{dtype}",
            "reductions",
            "exact",
            "sort",
            [dtype],
            dtype,
            body,
            make=_few(dtype),
            whole=True,
            size=4096,
        )
    body = "o = tl.arange(0, 4096)\ntl.store(out + tl.arange(0, 256), tl.histogram(tl.load(pa + o).to(tl.int32), 256))"
    yield Case(
        "histogram", "reductions", "exact", "histogram", ["u8"], "i32", body, whole=True, size=256, make=_rows("u8")
    )
    # What a value that names no bin adds to is for the compiler to say.
    for bins in (8, 32, 256):
        body = f"o = tl.arange(0, 4096)\ntl.store(out + tl.arange(0, {bins}), tl.histogram(tl.load(pa + o), {bins}))"
        yield Case(
            f"histogram_beyond_{bins}", "reductions", "undefined", "histogram, values without a bin", ["i32"], "i32",
            body, whole=True, size=bins, make=_rows("i32"),
        )  # fmt: skip
    body = f"{MATRIX}v = tl.load(pa + o)\ntl.store(out + o, tl.gather(v, (tl.load(pb + o) & 63).to(tl.int32), 1))"
    yield Case(
        "gather", "reductions", "exact", "gather", ["fp32", "i32"], "fp32", body, whole=True, size=4096,
        make=lambda rng: [sample("fp32", -4, 4, 4096, rng), int_bits("i32", 4096, rng)],
    )  # fmt: skip


def _few(dtype: str) -> Callable:
    """Values with many ties and no NaN."""

    def make(rng: np.random.Generator) -> list[np.ndarray]:
        if is_float(dtype):
            pool = float_bits(dtype, 4096, rng)
            pool = pool[np.isfinite(to_double(dtype, pool))][:1500]
            # Of two zeros of different sign the order of a reduction decides which one comes out.
            pool = pool[to_double(dtype, pool) != 0]
        else:
            pool = int_bits(dtype, 1500, rng)
        return [rng.choice(pool, 4096)]

    return make


def atomics() -> Iterator[Case]:
    """Read-modify-write of each type: what is left, where no two lanes meet, and totals where all meet."""
    for dtype in ("i32", "u32", "i64", "u64", "fp32", "fp64", "fp16", "bf16"):
        operations = ["add", "max", "min", "and", "or", "xor", "xchg"]
        if is_float(dtype):
            operations = ["add", "max", "min", "xchg"] if dtype in ("fp32", "fp64") else ["add"]
        for operation in operations:
            body = (
                "o = tl.arange(0, 1024)\ntl.store(out + o, tl.load(pa + o))\ntl.debug_barrier()\n"
                f"tl.atomic_{operation}(out + o, tl.load(pb + o))"
            )
            yield Case(
                f"atomic_{operation}_{dtype}", "atomics", "exact", f"atomic_{operation}", [dtype] * 2, dtype, body,
                make=_apart(dtype), whole=True, size=1024,
            )  # fmt: skip
        if is_float(dtype):
            continue
        for operation in ("add", "max", "min", "xor"):
            body = (
                f"o = tl.program_id(0) * 256 + tl.arange(0, 256)\ntl.atomic_{operation}(out + o % 16, tl.load(pa + o))"
            )
            yield Case(
                f"atomic_{operation}_all_{dtype}", "atomics", "exact", f"atomic_{operation}, together", [dtype], dtype,
                body, make=lambda rng, dtype=dtype: [int_bits(dtype, 4096, rng)], whole=True, size=16, grid=16,
            )  # fmt: skip
    for dtype in ("i32", "i64", "u16"):
        body = (
            "o = tl.arange(0, 1024)\ntl.store(out + o, tl.load(pa + o))\ntl.debug_barrier()\n"
            "v = tl.load(pa + o)\ntl.atomic_cas(out + o, tl.where(o % 2 == 0, v, tl.load(pb + o)), tl.load(pb + o))"
        )
        yield Case(
            f"atomic_cas_{dtype}", "atomics", "exact", "atomic_cas", [dtype] * 2, dtype, body, whole=True, size=1024,
            make=lambda rng, dtype=dtype: [int_bits(dtype, 1024, rng) for _ in range(2)],
        )  # fmt: skip


def _apart(dtype: str) -> Callable:
    def make(rng: np.random.Generator) -> list[np.ndarray]:
        if not is_float(dtype):
            return [int_bits(dtype, 1024, rng), int_bits(dtype, 1024, rng)]
        # Atomic additions of fp32 flush subnormal numbers; extrema of floats are those of their bits: no NaN.
        return [sample(dtype, -100, 100, 1024, rng) for _ in range(2)]

    return make


def others() -> Iterator[Case]:
    """Random numbers, inline assembly, wrapped addresses of loops."""
    offsets = "o = tl.arange(0, 1024)\n"
    seeds = {"make": lambda rng: [int_bits("i32", 1024, rng)], "whole": True, "size": 1024}
    for name, out in {"randint": "u32", "rand": "fp32"}.items():
        body = f"{offsets}r = tl.{name}(20261129, tl.load(pa + o))\ntl.store(out + o, r.to({_tl(out)}))"
        yield Case(f"random_{name}", "random", "exact", name, ["i32"], out, body, **seeds)
    body = f"{offsets}tl.store(out + o, tl.randn(7, tl.load(pa + o)))"
    yield Case("random_randn", "random", "ulp", "randn", ["i32"], "fp32", body, bound=16, absolute=2e-6, **seeds)
    for name, asm, constraints, pack, inputs, out in ASSEMBLY:
        arguments = ", ".join("abc"[: len(inputs)])
        body = (
            f"r = tl.inline_asm_elementwise('''{asm}''', '{constraints}', [{arguments}], dtype={_tl(out)}, "
            f"is_pure=True, pack={pack})"
        )
        yield Case(f"asm_{name}", "inline assembly", "exact", name, inputs, out, body)


def _tl(dtype: str) -> str:
    return f"tl.{TRITON[dtype]}"


SETP = "{ .reg .pred p; setp.lt.u32 p, $1, $2; selp.b32 $0, $1, 7, p; }"
PREDICATED = "{ .reg .pred p; setp.gt.s32 p, $1, 9; mov.b32 $0, $1; @!p add.s32 $0, $1, 3; }"
TO_FP8 = "{ .reg .b16 t; cvt.rn.satfinite.FP8.f32 t, $2, $1; cvt.rn.f16x2.FP8 $0, t; }"
# name, text, constraints, elements at once, types of inputs, type of the result
ASSEMBLY = [
    ("prmt", "prmt.b32 $0, $1, $2, 0x5746;", "=r,r,r", 1, ["i32", "i32"], "i32"),
    ("lop3", "lop3.b32 $0, $1, $2, $3, 0xea;", "=r,r,r,r", 1, ["i32", "i32", "i32"], "i32"),
    ("bfe_s32", "bfe.s32 $0, $1, 5, 9;", "=r,r", 1, ["i32"], "i32"),
    ("bfe_u32", "bfe.u32 $0, $1, 28, 9;", "=r,r", 1, ["i32"], "i32"),
    ("bfi", "bfi.b32 $0, $1, $2, 7, 11;", "=r,r,r", 1, ["i32", "i32"], "i32"),
    ("shf_l", "shf.l.wrap.b32 $0, $1, $2, 7;", "=r,r,r", 1, ["i32", "i32"], "i32"),
    ("mad", "mad.lo.s32 $0, $1, $2, $3;", "=r,r,r,r", 1, ["i32", "i32", "i32"], "i32"),
    ("setp_selp", SETP, "=r,r,r", 1, ["i32", "i32"], "i32"),
    ("predicated", PREDICATED, "=r,r", 1, ["i32"], "i32"),
    ("and_packed", "and.b32 $0, $1, 0x1F1F1F1F;", "=r,r", 4, ["i8"], "i8"),
    ("add_f16x2", "add.f16x2 $0, $1, $2;", "=r,r,r", 2, ["fp16", "fp16"], "fp16"),
    ("fma_f16x2", "fma.rn.f16x2 $0, $1, $2, $1;", "=r,r,r", 2, ["fp16", "fp16"], "fp16"),
    ("max_bf16x2", "max.bf16x2 $0, $1, $2;", "=r,r,r", 2, ["bf16", "bf16"], "bf16"),
    ("cvt_bf16x2", "cvt.rn.bf16x2.f32 $0, $2, $1;", "=r,r,r", 2, ["fp32"], "bf16"),
    ("cvt_f16x2", "cvt.rn.f16x2.f32 $0, $2, $1;", "=r,r,r", 2, ["fp32"], "fp16"),
    ("cvt_e4m3x2", TO_FP8.replace("FP8", "e4m3x2"), "=r,r,r", 2, ["fp32"], "fp16"),
    ("cvt_e5m2x2", TO_FP8.replace("FP8", "e5m2x2"), "=r,r,r", 2, ["fp32"], "fp16"),
    ("cvt_s32", "cvt.rni.s32.f32 $0, $1;", "=r,f", 1, ["fp32"], "i32"),
    ("cvt_sat_s8", "cvt.sat.s8.s32 $0, $1;", "=r,r", 1, ["i32"], "i32"),
    ("tf32", "cvt.rna.tf32.f32 $0, $1;", "=r,f", 1, ["fp32"], "i32"),
    ("dp4a", "dp4a.s32.s32 $0, $1, $2, $1;", "=r,r,r", 1, ["i32", "i32"], "i32"),
]  # fmt: skip


def wholes() -> Iterator[Case]:
    """All of them."""
    for group in (dots, reductions, atomics, others):
        yield from group()
