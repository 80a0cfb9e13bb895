"""The matrix of exactness: operations x types, each a small Triton kernel with inputs and a way to compare."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from . import bounds
from .types import FLOATS, INTS, TRITON, is_float, pairs_of, sample, to_double, values_of

COUNT = 1 << 14
BLOCK = 1024


@dataclass
class Case:
    """One kernel: `body` computes `r` from `a`, `b`, `c`, one element each, or does all by itself if `whole`."""

    name: str
    group: str
    kind: str  # exact, ulp, order, or undefined (the language does not say what comes out)
    operation: str
    inputs: list[str]
    out: str
    body: str
    bound: float = 0.0  # units in the last place for ulp; for order, a multiple of `scale(inputs)`
    absolute: float = 0.0  # an error that is allowed whatever the value
    twice: bool = False  # the emulator makes the documented error too, on purpose
    make: Callable[[np.random.Generator], list[np.ndarray]] | None = None
    scale: Callable[[list[np.ndarray]], np.ndarray] | None = None
    whole: bool = False
    size: int = 0  # elements of the result, if not as many as of the inputs
    grid: int = 0
    # What numpy or ml_dtypes says comes out, in bits of the result's type, for those that can say it exactly.
    want: Callable[[list[np.ndarray]], np.ndarray] | None = None
    options: dict = field(default_factory=dict)

    def data(self) -> list[np.ndarray]:
        """The inputs, of one length that is a multiple of the block."""
        rng = np.random.default_rng(sum(self.name.encode()) + 7)
        if self.make:
            arrays = self.make(rng)
        elif len(self.inputs) == 1:
            arrays = [values_of(self.inputs[0], COUNT, rng)]
        else:
            arrays = pairs_of(self.inputs, COUNT, rng)
        if self.whole:
            return arrays
        size = -(-len(arrays[0]) // BLOCK) * BLOCK
        return [np.resize(array, size) for array in arrays]

    def source(self) -> str:
        """The kernel."""
        names = "abcd"[: len(self.inputs)]
        lines = ["@triton.jit", f"def {self.name}({', '.join(f'p{name}' for name in names)}, out):"]
        if not self.whole:
            lines += ["    o = tl.program_id(0) * 1024 + tl.arange(0, 1024)"]
            lines += [f"    {name} = tl.load(p{name} + o)" for name in names]
        lines += [f"    {line}" for line in self.body.splitlines()]
        if not self.whole:
            lines += ["    tl.store(out + o, r)"]
        return "\n".join(lines) + "\n"


def _to(dtype: str) -> str:
    return f"tl.{TRITON[dtype]}"


def casts() -> Iterator[Case]:
    """Every type to every other, and towards zero where Triton has it."""
    kinds = [*FLOATS, *INTS, "i1"]
    for source in kinds:
        for target in kinds:
            if source == target or (source == "i1" and target == "fp8e5"):
                continue
            name, group = f"cast_{source}_{target}", "casts"
            if {"fp8e4nv", "fp8e5"} & {source, target} and not (is_float(source) and is_float(target)):
                continue  # Triton goes through another float
            yield Case(name, group, "exact", "to", [source], target, f"r = a.to({_to(target)})")
    for source, target in [("fp32", "fp16"), ("fp32", "bf16"), ("fp64", "fp32"), ("fp64", "fp16"), ("fp32", "fp8e5")]:
        body = f"r = a.to({_to(target)}, fp_downcast_rounding='rtz')"
        yield Case(f"cast_{source}_{target}_rtz", "casts", "exact", "to, rtz", [source], target, body)
    for source, target in [("fp32", "i32"), ("i64", "fp64"), ("fp16", "i16"), ("bf16", "u16"), ("fp8e5", "u8")]:
        body = f"r = a.to({_to(target)}, bitcast=True)"
        yield Case(f"bitcast_{source}_{target}", "casts", "exact", "to, bitcast", [source], target, body)


def integers() -> Iterator[Case]:
    """Arithmetic, shifts, comparisons and functions of all integer types."""
    binary = {
        "add": "a + b", "sub": "a - b", "mul": "a * b", "and": "a & b", "or": "a | b", "xor": "a ^ b",
        "min": "tl.minimum(a, b)", "max": "tl.maximum(a, b)",
    }  # fmt: skip
    for dtype, kind in INTS.items():
        bits = np.iinfo(kind).bits
        for operation, expression in binary.items():
            yield Case(f"{operation}_{dtype}", "integers", "exact", operation, [dtype] * 2, dtype, f"r = {expression}")
        for operation, expression in {"not": "~a", "neg": "-a", "abs": "tl.abs(a)"}.items():
            yield Case(f"{operation}_{dtype}", "integers", "exact", operation, [dtype], dtype, f"r = {expression}")
        for operation, sign in {"lt": "<", "le": "<=", "eq": "=="}.items():
            body = f"r = (a {sign} b).to(tl.int32)"
            yield Case(f"{operation}_{dtype}", "integers", "exact", operation, [dtype] * 2, "i32", body)
        # The language leaves these open: division by zero, MIN / -1, shifts by the width or more.
        safe = f"b = tl.where(b == 0, 1, b).to({_to(dtype)})"
        if dtype.startswith("i"):
            safe += f"\na = tl.where((a == {np.iinfo(kind).min}) & (b == -1), 0, a).to({_to(dtype)})"
        for operation, sign in {"div": "//", "rem": "%"}.items():
            body = f"{safe}\nr = a {sign} b"
            yield Case(f"{operation}_{dtype}", "integers", "exact", operation, [dtype] * 2, dtype, body)
            undefined = f"r = a {sign} b"
            name = f"{operation}_any_{dtype}"
            yield Case(name, "undefined", "undefined", f"{operation}, by any", [dtype] * 2, dtype, undefined)
        for operation, sign in {"shl": "<<", "shr": ">>"}.items():
            body = f"b = (b & {bits - 1}).to({_to(dtype)})\nr = a {sign} b"
            yield Case(f"{operation}_{dtype}", "integers", "exact", operation, [dtype] * 2, dtype, body)
            name = f"{operation}_any_{dtype}"
            yield Case(name, "undefined", "undefined", f"{operation}, by any", [dtype] * 2, dtype, f"r = a {sign} b")
    for dtype in ("i32", "u32", "i64", "u64"):
        yield Case(f"umulhi_{dtype}", "integers", "exact", "umulhi", [dtype] * 2, dtype, "r = tl.umulhi(a, b)")
        yield Case(f"cdiv_{dtype}", "integers", "exact", "cdiv", [dtype], dtype, "r = tl.cdiv(a, 7)")


def floats() -> Iterator[Case]:
    """Single IEEE operations of all float types, and what only moves or compares."""
    for dtype in ("fp16", "bf16", "fp32", "fp64"):
        binary = {
            "add": "a + b", "sub": "a - b", "mul": "a * b", "minimum": "tl.minimum(a, b)",
            "maximum": "tl.maximum(a, b)",
            "minimum_nan": "tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)",
            "maximum_nan": "tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)",
            "where": "tl.where(a < b, a, b)",
            "clamp": "tl.clamp(a, -1.0, b)",
            "clamp_nan": "tl.clamp(a, -1.0, b, propagate_nan=tl.PropagateNan.ALL)",
        }  # fmt: skip
        if dtype == "fp64":
            binary["div"] = "a / b"
        if dtype == "fp32":
            binary["div_rn"] = "tl.div_rn(a, b)"
        for operation, expression in binary.items():
            if operation.startswith("clamp"):
                expression = f"tl.where(b >= -1, {expression}, a)"
            yield Case(f"{operation}_{dtype}", "floats", "exact", operation, [dtype] * 2, dtype, f"r = {expression}")
        yield Case(f"neg_{dtype}", "floats", "exact", "neg", [dtype], dtype, "r = -a")
        yield Case(f"abs_{dtype}", "floats", "exact", "abs", [dtype], dtype, "r = tl.abs(a)")
        yield Case(f"fma_{dtype}", "floats", "exact", "fma", [dtype] * 3, dtype, "r = tl.fma(a, b, c)")
        for operation, sign in {"lt": "<", "le": "<=", "eq": "==", "ne": "!=", "gt": ">", "ge": ">="}.items():
            body = f"r = (a {sign} b).to(tl.int32)"
            yield Case(f"{operation}_{dtype}", "floats", "exact", operation, [dtype] * 2, "i32", body)
        yield Case(f"rem_{dtype}", "floats", "exact", "%", [dtype] * 2, dtype, "r = a % b", make=_quotients(dtype))
    for dtype in ("fp32", "fp64"):
        for operation in ("floor", "ceil"):
            yield Case(f"{operation}_{dtype}", "floats", "exact", operation, [dtype], dtype, f"r = tl.{operation}(a)")
    yield Case("sqrt_rn_fp32", "floats", "exact", "sqrt_rn", ["fp32"], "fp32", "r = tl.sqrt_rn(a)")
    yield Case("sqrt_fp64", "floats", "exact", "sqrt", ["fp64"], "fp64", "r = tl.sqrt(a)")
    for dtype in ("fp16", "bf16", "fp32", "fp64"):
        body = "r = a * b + c"
        yield Case(
            f"contracted_{dtype}", "contraction", "order", "a * b + c", [dtype] * 3, dtype, body,
            bound=2.0, make=_moderate([dtype] * 3), scale=_contraction(dtype),
        )  # fmt: skip


def _quotients(dtype: str) -> Callable:
    """Dividends up to a thousand times the divisor."""
    return lambda rng: [sample(dtype, -900, 900, COUNT, rng), sample(dtype, -30, 30, COUNT, rng)]


def _moderate(dtypes: list[str]) -> Callable:
    return lambda rng: [sample(dtype, -8, 8, COUNT, rng) for dtype in dtypes]


def _contraction(dtype: str) -> Callable:
    """One unit in the last place of the largest term."""
    step = 2.0 ** -FLOATS[dtype][2]

    def scale(data: list[np.ndarray]) -> np.ndarray:
        a, b, c = (to_double(dtype, array) for array in data)
        return step * (np.abs(a * b) + np.abs(c))

    return scale


def functions() -> Iterator[Case]:
    """Functions within the error that CUDA's documentation gives, or PTX's for single instructions."""
    for function in bounds.FUNCTIONS:
        for dtype, bound in function.bounds.items():
            arguments = ", ".join("abcd"[: function.operands])
            module = "tl" if function.triton else "libdevice"
            inputs = [dtype] * function.operands
            if function.integer_first:
                inputs[0] = "i32"
            elif function.integer_last:
                inputs[-1] = "i32"

            def make(
                rng: np.random.Generator, inputs: list[str] = inputs, function: bounds.Function = function
            ) -> list:
                return [
                    sample(kind, *function.ranges[min(at, len(function.ranges) - 1)], COUNT, rng)
                    for at, kind in enumerate(inputs)
                ]

            prefix = "tl" if function.triton else "nv"
            twice = function.name.startswith("fast_")
            yield Case(
                f"{prefix}_{function.name}_{dtype}", "functions", "ulp", f"{module}.{function.name}", inputs, dtype,
                f"r = {module}.{function.name}({arguments})", bound=bound, absolute=function.absolute, make=make,
                twice=twice,
            )  # fmt: skip
    yield Case(
        "div_fp32", "functions", "ulp", "/", ["fp32"] * 2, "fp32", "r = a / b", bound=2, make=_moderate(["fp32"] * 2)
    )
    for dtype, bound in {"fp16": 1, "bf16": 1}.items():
        yield Case(
            f"div_{dtype}", "functions", "ulp", "/", [dtype] * 2, dtype, "r = a / b", bound=bound,
            make=_moderate([dtype] * 2),
        )  # fmt: skip
    for name, instruction, dtype, bound, absolute, low, high in bounds.INSTRUCTIONS:
        letter = "r" if dtype == "fp16" else "f"
        pack = 2 if dtype == "fp16" else 1
        body = (
            f"r = tl.inline_asm_elementwise('{instruction} $0, $1;', '={letter},{letter}', [a], dtype={_to(dtype)}, "
            f"is_pure=True, pack={pack})"
        )
        yield Case(
            f"asm_{name}", "functions", "ulp", instruction, [dtype], dtype, body, bound=bound, absolute=absolute,
            twice=True, make=lambda rng, dtype=dtype, low=low, high=high: [sample(dtype, low, high, COUNT, rng)],
        )  # fmt: skip


def exact_functions() -> Iterator[Case]:
    """libdevice's functions with one right answer."""
    for name, inputs, out in bounds.EXACT:
        arguments = ", ".join("abcd"[: len(inputs)])
        body = f"r = libdevice.{name}({arguments})"
        if out == "i1":
            out, body = "i32", f"{body}.to(tl.int32)"
        suffix = "_".join(dict.fromkeys(inputs))
        yield Case(f"nv_{name}_{suffix}", "exact functions", "exact", f"libdevice.{name}", inputs, out, body)
