"""What numpy and ml_dtypes say of the cases in scripts/gpu/exact, where they have an opinion of their own."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
from exact.cases import Case
from exact.types import INTS, bits_type, is_float, to_double

DTYPES = {
    "fp64": np.float64,
    "fp32": np.float32,
    "fp16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "fp8e5": ml_dtypes.float8_e5m2,
    "fp8e4nv": ml_dtypes.float8_e4m3fn,
}
LARGEST = {"fp8e5": 57344.0, "fp8e4nv": 448.0}


def values(dtype: str, bits: np.ndarray) -> np.ndarray:
    """An array of numpy's or ml_dtypes' type."""
    return bits.view(DTYPES[dtype]) if is_float(dtype) else bits


def reference(case: Case) -> Callable[[list[np.ndarray]], np.ndarray] | None:
    """The function of a case's inputs that gives the result's bits; None if there is none here."""
    operation, out = case.operation, case.out
    if case.group == "casts" and operation == "to":
        return lambda data: cast(case.inputs[0], out, data[0])
    table = INTEGERS if case.group == "integers" else FLOATS if case.group == "floats" else {}
    function = table.get(operation)
    if function is None:
        return None

    def run(data: list[np.ndarray]) -> np.ndarray:
        with np.errstate(all="ignore"):
            result = function(*(values(dtype, bits) for dtype, bits in zip(case.inputs, data, strict=True)))
            return np.asarray(result).astype(DTYPES[out] if is_float(out) else bits_type(out)).view(bits_type(out))

    return run


def cast(source: str, target: str, bits: np.ndarray) -> np.ndarray | None:
    """A cast with the GPU's saturation. None where numpy's own would round twice."""
    x = values(source, bits)
    with np.errstate(all="ignore"):
        if is_float(source) and is_float(target):
            return narrowed(x, source, target).view(bits_type(target))
        if is_float(source):
            return to_integer(to_double(source, bits), source, target)
        if is_float(target):
            wide = x.astype(np.float64) if np.dtype(x.dtype).itemsize < 8 else x
            if wide is x and target in ("fp16", "bf16"):
                return None
            if target == "bf16":
                wide = to_odd_single(wide)
            return wide.astype(DTYPES[target]).view(bits_type(target))
        if target == "i1":
            return (x != 0).astype(np.int8)
        # A boolean is 0 or 1.
        return x.astype(INTS[target])


def narrowed(x: np.ndarray, source: str, target: str) -> np.ndarray:
    """The nearest value; fp8 saturates."""
    if source == "fp8e5" and target == "bf16":
        # Triton's own conversion: the bits are moved, an infinity becomes 65536.
        codes = x.view(np.uint8).astype(np.uint32)
        special = (codes & 0x7C) == 0x7C
        moved = ((codes & 0x80) << 8 | 143 << 7 | (codes & 3) << 5).astype(np.uint16)
        return np.where(special, moved, x.astype(np.float32).astype(ml_dtypes.bfloat16).view(np.uint16)).view(
            ml_dtypes.bfloat16
        )
    if source == "fp64" and target != "fp32":
        x = to_odd_single(x)
    elif source != "fp32":
        x = x.astype(np.float32)
    if target in LARGEST:
        x = np.where(np.isnan(x), x, np.clip(x, -LARGEST[target], LARGEST[target]))
    return x.astype(DTYPES[target])


def to_odd_single(x: np.ndarray) -> np.ndarray:
    """Rounded to fp32 so that a further rounding is as if done once."""
    nearest = x.astype(np.float32)
    back = nearest.astype(np.float64)
    bits = nearest.view(np.uint32)
    cut = np.where(np.abs(back) > np.abs(x), bits - 1, bits) | np.uint32(1)
    exact = (back == x) | np.isnan(x) | np.isinf(x)
    return np.where(exact, bits, cut).astype(np.uint32).view(np.float32)


def to_integer(x: np.ndarray, source: str, target: str) -> np.ndarray:
    """Towards zero, saturated; 8 bits come out of a conversion to 16; a boolean tests for zero."""
    if target == "i1":
        return (x != 0).astype(np.int8)
    kind = INTS[target]
    wide = {1: {"i": np.int16, "u": np.uint16}[target[0]]}.get(np.dtype(kind).itemsize, kind)
    info = np.iinfo(wide)
    whole = np.trunc(x)
    inside = (whole >= float(info.min)) & (whole < float(info.max) + (info.bits < 64))
    result = np.where(inside, whole, 0.0).astype(np.int64 if target != "u64" else np.uint64).astype(wide)
    result = np.where(~inside & (x > 0), info.max, np.where(~inside & (x < 0), info.min, result)).astype(wide)
    lowest = wide(1) << wide(info.bits - 1) if target[0] == "u" else info.min
    of_nan = lowest if source == "fp64" or info.bits == 64 else 0
    return np.where(np.isnan(x), of_nan, result).astype(wide).astype(kind)


def truncating(function: Callable[[int, int], int]) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """An operation on pairs of Python's integers, with a divisor that is never 0 and no overflow."""

    def run(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        low = np.iinfo(a.dtype).min
        b = np.where(b == 0, 1, b).astype(a.dtype)
        a = np.where((a == low) & (b == -1) if low < 0 else False, 0, a)
        pairs = zip(a.tolist(), b.tolist(), strict=True)
        return np.array([function(x, y) for x, y in pairs], dtype=object)

    return run


def shift(left: bool) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """By less than the width."""

    def run(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        amount = b & np.array(np.iinfo(a.dtype).bits - 1, a.dtype)
        return a << amount if left else a >> amount

    return run


def quotient(x: int, y: int) -> int:
    """Rounded towards zero, as C does."""
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


def high_product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The upper half of the unsigned product."""
    bits = np.iinfo(a.dtype).bits
    mask = (1 << bits) - 1
    pairs = zip(a.tolist(), b.tolist(), strict=True)
    products = [((x & mask) * (y & mask)) >> bits for x, y in pairs]
    return np.array(products, dtype=np.uint64).astype(a.dtype)


COMPARISONS = {"lt": np.less, "le": np.less_equal, "eq": np.equal, "ne": np.not_equal, "gt": np.greater}
COMPARISONS["ge"] = np.greater_equal
INTEGERS = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor, "min": np.minimum, "max": np.maximum, "not": np.invert, "neg": np.negative, "abs": np.abs,
    "div": truncating(quotient), "rem": truncating(lambda x, y: x - quotient(x, y) * y),
    "shl": shift(True), "shr": shift(False), "umulhi": high_product, **COMPARISONS,
}  # fmt: skip
FLOATS = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "div_rn": np.divide,
    "minimum": np.fmin, "maximum": np.fmax, "minimum_nan": np.minimum, "maximum_nan": np.maximum,
    "neg": lambda x: np.subtract(np.zeros_like(x), x), "abs": np.abs, "sqrt_rn": np.sqrt, "sqrt": np.sqrt,
    "where": lambda a, b: np.where(a < b, a, b), **COMPARISONS,
}  # fmt: skip
