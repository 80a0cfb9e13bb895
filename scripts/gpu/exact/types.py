"""Element types as raw bits, and inputs that reach their edges. Needs numpy alone."""

from __future__ import annotations

import numpy as np

# name: (numpy type of the bits, exponent bits, mantissa bits, bias); integers have no exponent.
FLOATS = {
    "fp64": (np.uint64, 11, 52, 1023),
    "fp32": (np.uint32, 8, 23, 127),
    "fp16": (np.uint16, 5, 10, 15),
    "bf16": (np.uint16, 8, 7, 127),
    "fp8e5": (np.uint8, 5, 2, 15),
    "fp8e4nv": (np.uint8, 4, 3, 7),
}
INTS = {
    "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
}  # fmt: skip
TRITON = {
    "fp64": "float64", "fp32": "float32", "fp16": "float16", "bf16": "bfloat16", "fp8e5": "float8e5",
    "fp8e4nv": "float8e4nv", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u8": "uint8",
    "u16": "uint16", "u32": "uint32", "u64": "uint64", "i1": "int1",
}  # fmt: skip


def is_float(dtype: str) -> bool:
    """Whether the type is a float."""
    return dtype in FLOATS


def bits_type(dtype: str) -> type:
    """The numpy type that an array of this type is held in: unsigned bits of a float, an integer as itself."""
    return FLOATS[dtype][0] if is_float(dtype) else np.int8 if dtype == "i1" else INTS[dtype]


def to_double(dtype: str, bits: np.ndarray) -> np.ndarray:
    """The values of raw bits, in double precision (exact but for 64-bit integers)."""
    if not is_float(dtype):
        return bits.astype(np.float64)
    if dtype == "fp64":
        return bits.view(np.float64)
    if dtype == "fp32":
        return bits.view(np.float32).astype(np.float64)
    if dtype == "fp16":
        return bits.view(np.float16).astype(np.float64)
    if dtype == "bf16":
        return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if dtype == "fp8e5":
        return (bits.astype(np.uint16) << 8).view(np.float16).astype(np.float64)
    codes = bits.astype(np.int64)
    exponent, fraction = (codes >> 3) & 15, codes & 7
    value = np.where(exponent == 0, fraction * 2.0**-9, (8 + fraction) * 2.0 ** (exponent - 10.0))
    value = np.where((codes & 127) == 127, np.nan, value)
    return np.where(codes & 128, -value, value)


def ulp(dtype: str, values: np.ndarray) -> np.ndarray:
    """The distance between neighbours of the type around these values."""
    _, _, mantissa, bias = FLOATS[dtype]
    with np.errstate(all="ignore"):
        exponent = np.frexp(np.abs(np.where(np.isfinite(values), values, 1.0)))[1] - 1
    return np.ldexp(1.0, np.maximum(exponent, 1 - bias) - mantissa)


def _words(rng: np.random.Generator, count: int) -> np.ndarray:
    return rng.integers(0, 2**64, count, dtype=np.uint64)


def _float_edges(dtype: str) -> np.ndarray:
    """Zeros, subnormals, neighbours of powers of two, ties of narrower types, bounds of integers, NaN, infinities."""
    kind, exponent_bits, mantissa, bias = FLOATS[dtype]
    one = bias << mantissa
    infinity = ((1 << exponent_bits) - 1) << mantissa
    codes = {0, 1, 2, 3, (1 << mantissa) - 1, 1 << mantissa, (1 << mantissa) + 1, infinity - 1, infinity, infinity + 1}
    for power in (-149, -126, -127, -24, -25, -14, -16, -9, -10, -2, -1, 0, 1, 2, 3, 7, 8, 15, 16, 31, 32, 63, 64):
        if 0 < power + bias < (1 << exponent_bits) - 1:
            here = (power + bias) << mantissa
            codes |= {here - 1, here, here + 1, here + (1 << (mantissa - 1)), here + (1 << (mantissa - 1)) - 1}
    for drop in (mantissa - 10, mantissa - 7, mantissa - 3, mantissa - 2, mantissa - 23):
        if drop > 0:
            half = 1 << (drop - 1)
            codes |= {one + half, one + half + 1, one + half - 1, one + 3 * half, one + 2 * half}
    for value in (
        448,
        464,
        480,
        57344,
        61440,
        65504,
        65519,
        65520,
        65536,
        127.5,
        128.5,
        255.5,
        3.3895e38,
        2147483520.0,
    ):
        if dtype in ("fp64", "fp32"):
            code = int(np.array(value, np.float64 if dtype == "fp64" else np.float32).view(kind))
            codes |= {code - 1, code, code + 1}
    sign = 1 << (exponent_bits + mantissa)
    return np.array(sorted(codes | {code | sign for code in codes}), dtype=np.uint64).astype(kind)


def float_bits(dtype: str, count: int, rng: np.random.Generator) -> np.ndarray:
    """Edges, any bits, values of middling size, and values that are ties when narrowed."""
    kind, exponent_bits, mantissa, bias = FLOATS[dtype]
    edges = _float_edges(dtype)
    each = (count - len(edges)) // 3 + 1
    any_bits = _words(rng, each).astype(kind)
    exponent = (bias + rng.integers(-min(bias - 1, 20), min(bias - 1, 20), 2 * each)).astype(np.uint64)
    fraction = _words(rng, 2 * each) & np.uint64((1 << mantissa) - 1)
    sign = _words(rng, 2 * each) & np.uint64(1 << (exponent_bits + mantissa))
    middling = (sign | (exponent << np.uint64(mantissa)) | fraction).astype(kind)
    for number, keep in enumerate((10, 7, 3, 2, 23)):
        if keep < mantissa:
            # One bit more than the narrower type keeps, and nothing after it.
            cut = mantissa - keep - 1
            part = slice(each + number * each // 5, each + (number + 1) * each // 5)
            middling[part] = (middling[part] >> kind(cut) | kind(1)) << kind(cut)
    return np.concatenate([edges, any_bits, middling])[:count] if count > len(edges) else edges


def every(dtype: str, count: int) -> np.ndarray:
    """All bit patterns of a type of 8 or 16 bits, repeated up to a count."""
    kind = bits_type(dtype)
    size = 1 << (8 * np.dtype(kind).itemsize)
    unsigned = np.dtype(kind).str.replace("i", "u")
    return np.arange(max(count, size), dtype=np.uint64).astype(unsigned).view(kind)


def int_bits(dtype: str, count: int, rng: np.random.Generator) -> np.ndarray:
    """Bounds, small values, powers of two and their neighbours, and values of any size."""
    kind = INTS[dtype]
    info = np.iinfo(kind)
    values = {info.min, info.min + 1, info.max, info.max - 1, *range(-4, 5), *range(60, 70)}
    for power in range(info.bits):
        values |= {(1 << power) - 1, 1 << power, (1 << power) + 1, -(1 << power)}
    edges = np.array([value for value in sorted(values) if info.min <= value <= info.max], dtype=kind)
    shift = rng.integers(0, info.bits, count).astype(np.uint64)
    unsigned = np.dtype(kind).str.replace("i", "u")
    wide = _words(rng, count) >> np.uint64(64 - info.bits)
    random = (wide >> shift).astype(unsigned).view(kind)
    signs = rng.integers(0, 2, count).astype(bool)
    random = np.where(signs, random, (np.zeros_like(random) - random)).astype(kind)
    return np.concatenate([edges, random])[:count]


def sample(dtype: str, low: float, high: float, count: int, rng: np.random.Generator) -> np.ndarray:
    """Bits of values between two bounds, half of them even, half by magnitude."""
    even = rng.uniform(low, high, count // 2)
    size = np.exp(rng.uniform(np.log(1e-6), np.log(max(abs(low), abs(high))), count - count // 2))
    signed = size * np.where(rng.random(len(size)) < 0.5, -1, 1)
    by_size = np.clip(signed, low, high)
    return from_double(dtype, np.concatenate([even, by_size]))


def from_double(dtype: str, values: np.ndarray) -> np.ndarray:
    """Bits of the nearest values, for inputs."""
    values = np.asarray(values, np.float64)
    if dtype == "fp64":
        return values.view(np.uint64)
    if dtype == "fp16":
        return values.astype(np.float16).view(np.uint16)
    single = values.astype(np.float32)
    if dtype == "fp32":
        return single.view(np.uint32)
    if dtype == "bf16":
        return ((single.view(np.uint32) + np.uint32(0x8000)) >> 16).astype(np.uint16)
    if dtype in INTS:
        return values.astype(INTS[dtype])
    table = to_double(dtype, np.arange(128, dtype=np.uint8))
    table = np.where(np.isfinite(table), table, np.inf)
    code = np.abs(np.abs(values)[:, None] - table[None, :]).argmin(1)
    return (code | np.where(np.signbit(values), 128, 0)).astype(np.uint8)


def values_of(dtype: str, count: int, rng: np.random.Generator) -> np.ndarray:
    """Inputs of a type: every bit pattern where there are few, otherwise edges and random ones."""
    if dtype == "i1":
        return np.arange(count).astype(np.int8) & 1
    if np.dtype(bits_type(dtype)).itemsize == 1:
        return every(dtype, count)
    if np.dtype(bits_type(dtype)).itemsize == 2:
        return every(dtype, count)
    return float_bits(dtype, count, rng) if is_float(dtype) else int_bits(dtype, count, rng)


def pairs_of(dtypes: list[str], count: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Inputs of several operands: all pairs of edges first, then random ones."""
    arrays = []
    edges = [_few_edges(dtype, rng) for dtype in dtypes]
    rows = np.indices([len(edge) for edge in edges[:2]]).reshape(min(2, len(edges)), -1)
    for number, dtype in enumerate(dtypes):
        random = float_bits(dtype, count, rng) if is_float(dtype) else int_bits(dtype, count, rng)
        rng.shuffle(random)
        first = (
            edges[number][rows[number]] if number < 2 else edges[number][np.arange(rows.shape[1]) % len(edges[number])]
        )
        arrays.append(np.concatenate([first, random])[:count] if len(first) < count else first[:count])
    size = min(len(array) for array in arrays)
    return [array[:size] for array in arrays]


def _few_edges(dtype: str, rng: np.random.Generator) -> np.ndarray:
    edges = _float_edges(dtype) if is_float(dtype) else int_bits(dtype, 120, rng)
    if len(edges) <= 72:
        return edges
    return np.concatenate([edges[:24], edges[-24:], rng.choice(edges[24:-24], 24, replace=False)])
