"""Rules of elements written or added at places that a tensor says: a copy of the base, then a lane an element."""

from __future__ import annotations

from typing import Any

import torch

from tilewright.teacher import ir
from tilewright.teacher.builder import unsqueeze
from tilewright.teacher.ir import Lazy, Template
from tilewright.teacher.lower import Lowering
from tilewright.teacher.ops_pointwise import out_dtype
from tilewright.teacher.ops_view import plain_view, reshape_to, size_const
from tilewright.teacher.rules import lowers
from tilewright.teacher.sizes import Size, Unsupported

MODES = {"sum": "add", "add": "add", "amax": "max", "amin": "min"}


def scattered(lowering: Lowering, x: Lazy, dim: int, index: Lazy, source: Lazy, mode: str) -> Lazy:
    """`x` with each element of the source at the place of its own, but along `dim` where the index says."""
    if mode == "add" and x.dtype in (torch.bool, torch.uint8, torch.int8, torch.int16):
        raise Unsupported(f"{lowering.label} of {x.dtype}")
    if mode in ("max", "min") and x.dtype not in (torch.float32, torch.int32, torch.int64):
        raise Unsupported(f"{lowering.label} of {x.dtype}")
    dim = dim % len(x.shape)
    for axis, extent in enumerate(index.shape):
        if lowering.sizes.of(extent) != lowering.sizes.of(source.shape[axis]):
            source = lowering.view(lowering.share(source), lambda v, d=axis, n=extent: v.slice(d, ir.ZERO, n))
    views = {"source": plain_view(lowering, lowering.cast(source, x.dtype)), "index": lowering.memory(index)}
    base = lowering.realise_again(x)
    out = lowering.temp(x.shape, x.dtype, lowering.label)
    views["base"] = base.term.view
    attrs = {"dim": dim, "shape": source.shape, "mode": mode}
    lowering.add(Template(lowering.label, [out], "scatter_add", views, attrs))
    return lowering.read(out)


@lowers("index_add", "scatter_add", "scatter_reduce")
def index_add(
    lowering: Lowering,
    x: Lazy,
    dim: int,
    index: Lazy,
    source: Lazy,
    reduce: str = "sum",
    include_self: bool = True,
    alpha: Any = 1,
) -> Lazy:
    """`x` with rows (or elements) of the source added where the index says."""
    if reduce not in MODES or not include_self:
        raise Unsupported(f"{lowering.label} by {reduce}" + ("" if include_self else " without the tensor itself"))
    if alpha != 1:
        raise Unsupported("index_add with a factor")
    if lowering.label == "index_add":
        index = along(lowering, index, source, dim % len(x.shape))
    return scattered(lowering, x, dim, index, source, MODES[reduce])


def along(lowering: Lowering, index: Lazy, source: Lazy, dim: int) -> Lazy:
    """A vector of places as one place for each element of the source."""
    for _ in range(len(source.shape) - dim - 1):
        index = unsqueeze(index, len(index.shape))
    return lowering.expand(index, source.shape)


@lowers("scatter")
def scatter(lowering: Lowering, x: Lazy, dim: int, index: Lazy, source: Any, *, reduce: str | None = None) -> Lazy:
    """Elements written, or added; of several for one place any may stay, as in torch."""
    if reduce not in (None, "add"):
        raise Unsupported(f"scatter by {reduce}")
    source = source if isinstance(source, Lazy) and source.shape else lowering.cast(source, x.dtype)
    if not source.shape:
        source = lowering.expand(source, index.shape)
    return scattered(lowering, x, dim, index, source, "add" if reduce else "store")


@lowers("index_copy")
def index_copy(lowering: Lowering, x: Lazy, dim: int, index: Lazy, source: Lazy) -> Lazy:
    return scattered(lowering, x, dim, along(lowering, index, source, dim % len(x.shape)), source, "store")


@lowers("index_fill")
def index_fill(lowering: Lowering, x: Lazy, dim: int, index: Lazy, value: Any) -> Lazy:
    """A place is filled if one of the indices names it."""
    dim = dim % len(x.shape)
    index = from_start(lowering, index, x.shape[dim])
    at = lowering.op("eq", torch.bool, unsqueeze(lowering.iota((x.shape[dim],), 0), 1), index)
    hit = lowering.reduce("any", at, [1], torch.bool)
    for _ in range(len(x.shape) - dim - 1):
        hit = unsqueeze(hit, len(hit.shape))
    return lowering.op("where", x.dtype, hit, lowering.cast(value, x.dtype), x)


def from_start(lowering: Lowering, index: Lazy, size: Size) -> Lazy:
    """Negative places count from the end."""
    at = lowering.cast(index, torch.int64)
    low = lowering.op("lt", torch.bool, at, lowering.const(0, torch.int64))
    return lowering.op("where", at.dtype, low, lowering.op("add", at.dtype, at, size_const(lowering, size)), at)


@lowers("index_put", "_unsafe_index_put")
def index_put(lowering: Lowering, x: Lazy, indices: list[Any], values: Lazy, accumulate: bool = False) -> Lazy:
    """`x[indices] = values`, or `+=`: the indices as places in the flat tensor."""
    indices = list(indices) + [None] * (len(x.shape) - len(indices))
    used = [d for d, i in enumerate(indices) if i is not None]
    if any(indices[d].dtype in (torch.bool, torch.uint8) for d in used):
        return masked_put(lowering, x, indices, values, accumulate)
    if used != list(range(used[0], used[-1] + 1)):
        raise Unsupported("writing at indices with a whole dimension between them")
    block = lowering.broadcast_shape([indices[d].shape for d in used])
    before, after = x.shape[: used[0]], x.shape[used[-1] + 1 :]
    shape, integer = (*before, *block, *after), torch.int64
    flat: Any = None
    for d, size in enumerate(x.shape):
        if d in used:
            at = from_start(lowering, indices[d], size)
            for _ in after:
                at = unsqueeze(at, len(at.shape))
        else:
            at = lowering.iota(shape, d if d < used[0] else d - len(x.shape) + len(shape))
        if flat is None:
            flat = at
        else:
            flat = lowering.op("add", integer, lowering.op("mul", integer, flat, size_const(lowering, size)), at)
    total, count = lowering.sizes.product(x.shape), lowering.sizes.product(shape)
    index = reshape_to(lowering, lowering.realise_again(lowering.expand(flat, shape)), (count,))
    source = reshape_to(lowering, lowering.realise_again(lowering.expand(values, shape)), (count,))
    base = reshape_to(lowering, lowering.share(x), (total,))
    out = scattered(lowering, base, 0, index, source, "add" if accumulate else "store")
    return reshape_to(lowering, out, x.shape)


def masked_put(lowering: Lowering, x: Lazy, indices: list[Any], values: Lazy, accumulate: bool) -> Lazy:
    """`x[mask] = number`: the only writing by a mask whose extent does not depend on data."""
    mask = indices[0]
    one = all(v == 1 for s in values.shape for v in lowering.sizes.of(s))
    if mask is None or mask.dtype != torch.bool or any(i is not None for i in indices[1:]) or not one:
        raise Unsupported("writing several values by a mask: the extent depends on data")
    for _ in values.shape:
        values = lowering.view(values, lambda v: v.squeeze(0))
    for _ in range(len(x.shape) - len(mask.shape)):
        mask = unsqueeze(mask, len(mask.shape))
    values = lowering.cast(values, x.dtype)
    new = lowering.op("add", x.dtype, x, values) if accumulate else values
    return lowering.op("where", x.dtype, mask, new, x)


@lowers("col2im")
def col2im(
    lowering: Lowering, x: Lazy, size: list[Any], kernel: list[Any], dilation: Any, padding: Any, stride: Any
) -> Lazy:
    """Each pixel adds up the taps that fall on it: a sum over taps, and no atomics."""
    if len(x.shape) != 3:
        raise Unsupported("fold without a batch dimension")
    from tilewright.teacher.builder import gather
    from tilewright.teacher.ops_reduce import accumulated

    integer = torch.int64
    taps = [lowering.size(k) for k in kernel]
    spatial = [lowering.size(s) for s in size]
    positions = [
        lowering.sizes.derive(
            f"positions_{i}", positions_of(lowering, spatial[i], kernel, dilation, padding, stride, i)
        )
        for i in range(2)
    ]
    channels = lowering.sizes.quotient(x.shape[1], taps[0] * taps[1])
    columns = lowering.realise(x)
    shape = (x.shape[0], channels, *spatial, *taps)
    good: Any = None
    row: Any = lowering.iota(shape, 1)
    place: Any = None
    for i in range(2):
        d, p, s = (size_const(lowering, lowering.size(v[i])) for v in (dilation, padding, stride))
        tap = lowering.iota(shape, 4 + i)
        at = lowering.op("add", integer, lowering.iota(shape, 2 + i), p)
        at = lowering.op("sub", integer, at, lowering.op("mul", integer, tap, d))
        start = lowering.op("floordiv", integer, lowering.op("maximum", integer, at, lowering.const(0, integer)), s)
        exact = lowering.op("eq", torch.bool, lowering.op("mul", integer, start, s), at)
        inside = lowering.op("lt", torch.bool, start, size_const(lowering, positions[i]))
        exact = lowering.op("and", torch.bool, exact, inside)
        good = exact if good is None else lowering.op("and", torch.bool, good, exact)
        start = lowering.op("minimum", integer, start, size_const(lowering, positions[i] - 1))
        row = lowering.op("add", integer, lowering.op("mul", integer, row, size_const(lowering, taps[i])), tap)
        line = place if place is None else lowering.op("mul", integer, place, size_const(lowering, positions[i]))
        place = start if line is None else lowering.op("add", integer, line, start)
    picked = gather(lowering, columns, [lowering.iota(shape, 0), row, place])
    wide = accumulated(x.dtype)
    value = lowering.op("where", wide, good, lowering.cast(picked, wide), lowering.const(0.0, wide))
    return lowering.cast(lowering.reduce("sum", value, [4, 5], wide), out_dtype(lowering))


def positions_of(
    lowering: Lowering, size: Any, kernel: Any, dilation: Any, padding: Any, stride: Any, axis: int
) -> Any:
    from tilewright.teacher.sizes import FloorDiv

    k, d, p, s = (lowering.size(v[axis]) for v in (kernel, dilation, padding, stride))
    return FloorDiv(size + 2 * p - d * (k - 1) - 1, s) + 1
