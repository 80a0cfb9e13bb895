"""Rules of what depends on the order of elements: sorting, the largest few, medians, running extremes, intervals."""

from __future__ import annotations

from typing import Any

import sympy
import torch

from tilewright.teacher import ir
from tilewright.teacher.builder import unsqueeze
from tilewright.teacher.ir import Lazy, Template
from tilewright.teacher.lower import Lowering
from tilewright.teacher.ops_pointwise import out_dtype
from tilewright.teacher.ops_reduce import drop
from tilewright.teacher.ops_view import plain_view
from tilewright.teacher.rules import lowers
from tilewright.teacher.sizes import Size, Unsupported

LONGEST = 32768
"""Elements of a row that one program sorts."""


def ordered(lowering: Lowering, x: Lazy, dim: int, descending: bool, keep: Size | None = None) -> tuple[Lazy, Lazy]:
    """The first `keep` elements along a dimension in order, and where they were; equal ones in their own order."""
    if not x.shape:
        return x, lowering.const(0, torch.int64)
    rank = len(x.shape)
    dim %= rank
    order = [d for d in range(rank) if d != dim] + [dim]
    moved = x if dim == rank - 1 else lowering.view(x, lambda v: v.permute(order))
    view = plain_view(lowering, moved)
    length = x.shape[dim]
    if max(lowering.sizes.of(length)) > LONGEST:
        raise Unsupported(f"{lowering.label} of rows with more than {LONGEST} elements")
    if x.dtype in (torch.float64, torch.int64):
        raise Unsupported(f"{lowering.label} of {x.dtype}")
    keep = length if keep is None else keep
    shape = (*(x.shape[d] for d in order[:-1]), keep)
    outs = [lowering.temp(shape, x.dtype, "ordered"), lowering.temp(shape, torch.int64, "places")]
    attrs = {"length": length, "keep": keep, "descending": descending}
    lowering.add(Template(lowering.label, outs, "sort", {"x": view}, attrs))
    back = [order.index(d) for d in range(rank)]
    values, places = (lowering.view(lowering.read(o), lambda v: v.permute(back)) for o in outs)
    return values, places


@lowers("sort")
def sort(lowering: Lowering, x: Lazy, *args: Any, stable: Any = None, **kwargs: Any) -> list[Lazy]:
    """`sort(x, dim, descending)`, or `sort(x, *, stable, dim, descending)`."""
    dim, descending = (*args, *(kwargs.get(n, d) for n, d in (("dim", -1), ("descending", False))[len(args) :]))
    return list(ordered(lowering, x, dim, descending))


@lowers("argsort")
def argsort(lowering: Lowering, x: Lazy, *args: Any, **kwargs: Any) -> Lazy:
    return sort(lowering, x, *args, **kwargs)[1]


@lowers("topk")
def topk(lowering: Lowering, x: Lazy, k: Any, dim: int = -1, largest: bool = True, sorted: bool = True) -> list[Lazy]:
    return list(ordered(lowering, x, dim, largest, lowering.size(k)))


def at_place(lowering: Lowering, x: Lazy, dim: int, place: Size, keepdim: bool) -> list[Lazy]:
    """One element of each line in ascending order."""
    found = ordered(lowering, x, dim, False, place + 1)
    if not x.shape:
        return list(found)
    dim %= len(x.shape)
    picked = [lowering.view(f, lambda v: v.slice(dim, place, ir.ONE)) for f in found]
    return picked if keepdim else [drop(lowering, p, [dim]) for p in picked]


@lowers("kthvalue")
def kthvalue(lowering: Lowering, x: Lazy, k: Any, dim: int = -1, keepdim: bool = False) -> list[Lazy]:
    return at_place(lowering, x, dim, lowering.size(k) - 1, keepdim)


@lowers("median")
def median(lowering: Lowering, x: Lazy, dim: Any = None, keepdim: bool = False) -> Any:
    """The lower one of two middle elements."""
    if dim is None:
        from tilewright.teacher.ops_view import reshape_to

        flat = reshape_to(lowering, lowering.share(x), (lowering.sizes.product(x.shape),))
        return median(lowering, flat, 0)[0]
    length = x.shape[dim] if x.shape else ir.ONE
    return at_place(lowering, x, dim, lowering.sizes.derive("middle", floor_half(length - 1)), keepdim)


def floor_half(size: Size) -> Size:
    from tilewright.teacher.sizes import FloorDiv

    return FloorDiv(size, sympy.Integer(2))


@lowers("logcumsumexp", "cummax", "cummin")
def running(lowering: Lowering, x: Lazy, dim: int) -> Any:
    """A running total that keeps more than one number, or that is no sum."""
    label = lowering.label
    if label == "logcumsumexp" and x.dtype == torch.float64:
        raise Unsupported("logcumsumexp of float64")
    if not x.shape or lowering.sizes.of(x.shape[dim]) == (1,) * lowering.sizes.cases:
        return x if label == "logcumsumexp" else [x, lowering.const(0, torch.int64, x.shape)]
    outs = [lowering.temp(x.shape, x.dtype, label)]
    if label != "logcumsumexp":
        outs.append(lowering.temp(x.shape, torch.int64, "places"))
    lowering.add(ir.Scan(label, outs, label, x.term, x.shape, dim % len(x.shape)))
    found = [lowering.read(o) for o in outs]
    return found[0] if label == "logcumsumexp" else found


@lowers("bucketize", "searchsorted")
def bucketize(
    lowering: Lowering,
    x: Any,
    edges: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: Any = None,
    sorter: Any = None,
) -> Lazy:
    """How many edges lie before each element: a sum over the edges."""
    if lowering.label == "searchsorted":
        x, edges = edges, x
    if sorter is not None or not isinstance(edges, Lazy) or len(edges.shape) != 1:
        raise Unsupported(f"{lowering.label} with several rows of edges or an order of them")
    right = right or side == "right"
    x = lowering.lazy(x)
    spread = unsqueeze(x, len(x.shape))
    spread = lowering.cast(spread, edges.dtype)
    before = lowering.op("le" if right else "lt", torch.bool, edges, spread)
    if edges.dtype.is_floating_point:  # NaN comes after all of them
        before = lowering.op("or", torch.bool, before, lowering.op("ne", torch.bool, spread, spread))
    number = lowering.cast(before, torch.int64)
    return lowering.cast(lowering.reduce("sum", number, [len(x.shape)], torch.int64), out_dtype(lowering))
