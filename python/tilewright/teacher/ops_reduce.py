"""Rules of reductions and of what is made of them: norms, softmax, losses, pooling, statistics."""

from __future__ import annotations

import math
from typing import Any

import torch

from tilewright.teacher import ir
from tilewright.teacher.builder import gather, unsqueeze
from tilewright.teacher.ir import Lazy, Value
from tilewright.teacher.lower import Lowering
from tilewright.teacher.ops_pointwise import Calculator, out_dtype
from tilewright.teacher.ops_view import reshape_to
from tilewright.teacher.rules import lowers
from tilewright.teacher.sizes import Unsupported


def dims_of(x: Lazy, dim: Any) -> list[int]:
    """A `dim` argument as a list; all dimensions for None and an empty list."""
    if dim is None or (isinstance(dim, list) and not dim):
        return list(range(len(x.shape)))
    return [d % max(len(x.shape), 1) for d in (dim if isinstance(dim, list) else [dim])]


def count(lowering: Lowering, x: Lazy, dims: list[int]) -> Lazy:
    """How many elements a reduction covers, as a float constant."""
    total = lowering.sizes.product(x.shape[d] for d in dims)
    return Lazy(ir.Const(torch.float32, "", total if not total.is_Integer else int(total)), ())


def accumulated(dtype: torch.dtype) -> torch.dtype:
    """The dtype in which a statistic of this dtype is kept in memory between kernels."""
    return torch.float64 if dtype == torch.float64 else torch.float32


@lowers("sum", "mean")
def total(lowering: Lowering, x: Lazy, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Lazy:
    if isinstance(dim, torch.dtype):
        dim = None
    dims, label, result = dims_of(x, dim), lowering.label, out_dtype(lowering)
    wide = accumulated(result) if result.is_floating_point else result
    if not x.dtype.is_floating_point or wide != torch.float32:
        x = lowering.cast(x, wide)
    out = lowering.reduce("sum", x, dims, wide, keepdim, label)
    if label == "mean":
        out = lowering.op("div", wide, out, count(lowering, x, dims), hint="mean")
    return lowering.cast(out, result)


@lowers("amax", "amin", "max", "min", "prod", "any", "all", "argmax", "argmin")
def extreme(lowering: Lowering, x: Lazy, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    label = lowering.label
    if label in ("max", "min") and isinstance(dim, Lazy):
        return Calculator(lowering, x)("maximum" if label == "max" else "minimum", lowering.lazy(x), dim)
    kind = label.removeprefix("a") if label in ("amax", "amin") else label
    dims = dims_of(x, dim)
    if label in ("max", "min") and dim is not None:
        lowering.meta, metas = [m[0] for m in lowering.meta], lowering.meta
        best = lowering.reduce(kind, x, dims, x.dtype, keepdim)
        at = lowering.reduce("arg" + kind, x, dims, torch.int64, keepdim)
        lowering.meta = metas
        return [best, at]
    if kind in ("any", "all"):
        x = lowering.op("ne", torch.bool, x, lowering.const(0, x.dtype)) if x.dtype != torch.bool else x
    result = torch.int64 if kind.startswith("arg") else out_dtype(lowering)
    if kind == "prod":
        x = lowering.cast(x, result)
    if kind.startswith("arg") and len(dims) > 1:
        shape = (lowering.sizes.product(x.shape),)
        x, dims = reshape_to(lowering, lowering.share(x), shape), [0]
    return lowering.reduce(kind, x, dims, result, keepdim)


def moments(lowering: Lowering, x: Lazy, dims: list[int]) -> tuple[Lazy, Lazy]:
    """Mean and sum of squared deviations, both with the reduced dimensions kept."""
    mean, squares = lowering.reduce("moments", x, dims, accumulated(x.dtype), keepdim=True)
    return mean, squares


@lowers("var", "std", "var_mean", "std_mean")
def variance(lowering: Lowering, x: Lazy, dim: Any = None, *args: Any, **kwargs: Any) -> Any:
    label = lowering.label
    correction = kwargs.get("correction", 1)
    if isinstance(dim, bool):
        correction, dim = int(dim), None
    keepdim = kwargs.get("keepdim", False)
    if args and isinstance(args[0], bool):
        correction = int(args[0])
        keepdim = args[1] if len(args) > 1 else keepdim
    correction = 1 if correction is None else correction
    dims, x = dims_of(x, dim), lowering.share(x)
    mean, squares = moments(lowering, x, dims)
    wide = squares.dtype
    n = (
        lowering.op("sub", wide, count(lowering, x, dims), lowering.const(float(correction), wide))
        if correction
        else (count(lowering, x, dims))
    )
    out = lowering.op("div", wide, squares, n, hint="variance")
    if label.startswith("std"):
        out = lowering.op("sqrt", wide, out)
    results = [lowering.cast(r, x.dtype) for r in (out, mean)]
    if not keepdim:
        results = [drop(lowering, r, dims) for r in results]
    return results if label.endswith("_mean") else results[0]


def drop(lowering: Lowering, x: Lazy, dims: list[int]) -> Lazy:
    """Without dimensions of extent 1."""
    for d in sorted(dims, reverse=True):
        x = lowering.view(x, lambda v, d=d: v.squeeze(d))
    return x


def spread(lowering: Lowering, weight: Any, rank: int, axis: int) -> Any:
    """A vector along one axis of a shape."""
    for _ in range(rank - axis - 1):
        weight = unsqueeze(weight, len(weight.shape))
    return weight


@lowers("softmax", "_softmax", "log_softmax", "_log_softmax")
def softmax(lowering: Lowering, x: Lazy, dim: int, dtype: Any = None) -> Lazy:
    label = lowering.label
    c = Calculator(lowering, lowering.share(x), accumulated(out_dtype(lowering)))
    # NaN comes back with the differences to it.
    top = lowering.reduce("max", c.x, [dim], c.dtype, keepdim=True, keeps_nan=False)
    shifted = c("sub", c.x, top, hint="shifted")
    weights = c("exp", shifted, hint="weights")
    sums = lowering.reduce("sum", weights, [dim], c.dtype, keepdim=True)
    out = c("sub", shifted, c("log", sums)) if "log" in label else c("div", weights, sums, hint="softmax")
    return lowering.cast(out, out_dtype(lowering))


def logsumexp_of(lowering: Lowering, x: Lazy, dims: list[int], keepdim: bool) -> Lazy:
    c = Calculator(lowering, lowering.share(x), accumulated(x.dtype))
    top = lowering.reduce("max", c.x, dims, c.dtype, keepdim=True, keeps_nan=False)
    # A row of infinities has the maximum as its result, not the difference of two of them.
    finite = lowering.op("lt", torch.bool, c("abs", top), lowering.const(math.inf, c.dtype))
    top = lowering.op("where", c.dtype, finite, top, lowering.const(0.0, c.dtype), hint="top")
    sums = lowering.reduce("sum", c("exp", c("sub", c.x, top)), dims, c.dtype, keepdim=True)
    out = c("add", c("log", sums), top, hint="logsumexp")
    return out if keepdim else drop(lowering, out, dims)


@lowers("logsumexp")
def logsumexp(lowering: Lowering, x: Lazy, dim: Any, keepdim: bool = False) -> Lazy:
    return lowering.cast(logsumexp_of(lowering, x, dims_of(x, dim), keepdim), out_dtype(lowering))


@lowers("linalg_vector_norm", "norm", "linalg_norm", "frobenius_norm")
def vector_norm(
    lowering: Lowering, x: Lazy, order: Any = None, dim: Any = None, keepdim: bool = False, dtype: Any = None
) -> Lazy:
    if lowering.label == "frobenius_norm":
        order, dim, keepdim = None, order, bool(dim)
    dims = dims_of(x, dim)
    if order not in (None, "fro") and lowering.label == "linalg_norm" and len(dims) == 2:
        raise Unsupported("a matrix norm")
    order = 2 if order in (None, "fro") else order
    c = Calculator(lowering, x, accumulated(out_dtype(lowering)))
    size = c("abs", c.x)
    if order in (math.inf, -math.inf):
        out = lowering.reduce("max" if order > 0 else "min", size, dims, c.dtype, keepdim)
    elif order == 2:
        out = c("sqrt", lowering.reduce("sum", c("mul", c.x, c.x, hint="square"), dims, c.dtype, keepdim), hint="norm")
    elif order == 1:
        out = lowering.reduce("sum", size, dims, c.dtype, keepdim)
    elif order == 0:
        nonzero = lowering.cast(c("ne", c.x, 0.0), c.dtype)
        out = lowering.reduce("sum", nonzero, dims, c.dtype, keepdim)
    else:
        out = c("pow", lowering.reduce("sum", c("pow", size, float(order)), dims, c.dtype, keepdim), 1.0 / order)
    return lowering.cast(out, out_dtype(lowering))


@lowers("embedding_bag", "_embedding_bag", "_embedding_bag_forward_only")
def embedding_bag(
    lowering: Lowering,
    weight: Lazy,
    words: Lazy,
    starts: Lazy,
    scale_grad: bool = False,
    mode: int = 0,
    sparse: bool = False,
    factors: Any = None,
    last: bool = False,
    padding: int | None = None,
) -> Any:
    """Bags of equal length, which a matrix of words gives; modes are sum, mean, max."""
    rows = tuple(int(m[0].shape[0]) for m in lowering.meta)
    words_of = lowering.sizes.of(words.shape[0])
    even = getattr(starts.term, "name", "") == "arange" or isinstance(starts.term, ir.Const | ir.Op)
    if (
        (padding is not None and padding >= 0)
        or last
        or not even
        or any(n % r for n, r in zip(words_of, rows, strict=True))
    ):
        raise Unsupported("bags of different lengths")
    count_bags = lowering.sizes.find(rows, [*starts.shape])
    length = lowering.sizes.quotient(words.shape[0], count_bags)
    table = lowering.realise(weight)
    words = reshape_to(lowering, lowering.share(words), (count_bags, length))
    shape = (count_bags, length, weight.shape[1])
    at = lowering.expand(unsqueeze(words, 2), shape)
    wide = accumulated(weight.dtype)
    picked = lowering.cast(gather(lowering, table, [at, lowering.iota(shape, 2)]), wide)
    if factors is not None:
        share = reshape_to(lowering, lowering.share(factors), (count_bags, length, ir.ONE))
        picked = lowering.op("mul", wide, picked, lowering.cast(share, wide))
    out = lowering.reduce("max" if mode == 2 else "sum", picked, [1], wide, keeps_nan=False)
    if mode == 1:
        out = lowering.op(
            "div", wide, out, Lazy(ir.Const(wide, "", length if not length.is_Integer else int(length)), ())
        )
    return [lowering.cast(out, weight.dtype), None, None, None]


@lowers("_cdist_forward", "_euclidean_dist")
def distances(lowering: Lowering, x: Lazy, y: Lazy, p: Any = 2.0, mode: Any = None) -> Lazy:
    """Between all rows of one and all rows of the other; by differences, which cancel nothing."""
    c = Calculator(lowering, unsqueeze(lowering.share(x), len(x.shape) - 1), accumulated(x.dtype))
    other = lowering.cast(unsqueeze(lowering.share(y), len(y.shape) - 2), c.dtype)
    gap = c("sub", c.x, other, hint="gap")
    return vector_norm(lowering, gap, p, len(gap.shape) - 1)


__all__ = ["Value", "accumulated", "count", "dims_of"]
