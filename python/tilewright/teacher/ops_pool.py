"""Rules of pooling: a window is a view, so pooling is a reduction over taps."""

from __future__ import annotations

import math
from typing import Any

import torch

from tilewright.teacher import ir
from tilewright.teacher.builder import gather, unsqueeze
from tilewright.teacher.ir import Lazy
from tilewright.teacher.lower import Lowering
from tilewright.teacher.ops_pointwise import out_dtype
from tilewright.teacher.ops_reduce import accumulated, count
from tilewright.teacher.ops_view import known, reshape_to, size_const
from tilewright.teacher.rules import lowers
from tilewright.teacher.sizes import Size


def listed(value: Any, rank: int, default: Any = None) -> list[Any]:
    """A pooling argument as one number for each dimension."""
    if value is None or value == []:
        value = default
    value = value if isinstance(value, list | tuple) else [value]
    return list(value) * rank if len(value) == 1 else list(value)


def windows(
    lowering: Lowering,
    x: Lazy,
    rank: int,
    kernel: list[Any],
    stride: list[Any],
    padding: list[Any],
    dilation: list[Any],
    fill: Any,
) -> tuple[Lazy, list[Size], list[Size]]:
    """`x` with one tap dimension for each of the last `rank` ones; and the sizes of the windows' kernel and output."""
    lead = len(x.shape) - rank
    x = lowering.realise(x) if not isinstance(x.term, ir.Read) else x
    kernels, outs = [], []
    meta = lowering.meta
    if isinstance(meta[0], list | tuple):
        lowering.meta = [m[0] for m in meta]
    for i in range(rank):
        d = lead + i
        k, s, p, dil = (lowering.size(v[i]) for v in (kernel, stride, padding, dilation))
        span = dil * (k - 1) + 1
        size = x.shape[d]
        out = out_extent(lowering, d, size + 2 * p - span, s)
        need = (out - 1) * s + span
        # ceil_mode may look past the padding at the end.
        after = need - size - p
        after = p if all(v <= w for v, w in zip(lowering.sizes.of(after), lowering.sizes.of(p), strict=True)) else after
        if not (p == 0 and all(v <= 0 for v in lowering.sizes.of(after))):
            x = lowering.view(x, lambda v, d=d, p=p, a=after: v.pad(d, p, a, fill))
        x = lowering.view(x, lambda v, d=d, o=out, k=k, s=s, dil=dil: v.window(d, o, k, s, dil))
        kernels.append(k)
        outs.append(out)
    lowering.meta = meta
    return x, kernels, outs


def out_extent(lowering: Lowering, axis: int, room: Size, stride: Size) -> Size:
    """Positions along an axis: floor(room / stride) + 1, or as traced."""
    from tilewright.teacher.sizes import FloorDiv

    values = known(lowering, axis)
    formula = FloorDiv(room, stride) + 1
    name = f"out_{axis_label(lowering, axis)}"
    if lowering.sizes.of(formula) == values:
        return lowering.sizes.derive(name, formula)
    formula = FloorDiv(room + stride - 1, stride) + 1
    if lowering.sizes.of(formula) == values:
        return lowering.sizes.derive(name, formula)
    return lowering.sizes.find(values)


def axis_label(lowering: Lowering, axis: int) -> str:
    """height, width and the like, for the name of an output's extent."""
    from tilewright.teacher.lower import DIM_NAMES

    meta = lowering.meta[0]
    names = {3: ("batch", "channels", "length")}.get(meta.dim(), DIM_NAMES.get(meta.dim(), ()))
    return names[axis] if axis < len(names) else str(axis)


@lowers(
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "max_pool1d_with_indices",
    "max_pool2d_with_indices",
    "max_pool3d_with_indices",
)
def max_pool(
    lowering: Lowering,
    x: Lazy,
    kernel: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> Any:
    rank = int(lowering.label[8])
    kernel = listed(kernel, rank)
    stride, padding, dilation = listed(stride, rank, kernel), listed(padding, rank), listed(dilation, rank)
    image = x.shape[len(x.shape) - rank :]
    fill = -math.inf if x.dtype.is_floating_point else torch.iinfo(x.dtype).min
    x, kernels, _ = windows(lowering, x, rank, kernel, stride, padding, dilation, fill)
    dims = list(range(len(x.shape) - rank, len(x.shape)))
    out = lowering.reduce("max", x, dims, x.dtype)
    if not lowering.label.endswith("indices"):
        return out
    tap = lowering.reduce("argmax", x, dims, torch.int64, name="tap")
    starts = []
    for i in range(rank):
        first = times(lowering, lowering.iota(out.shape, len(out.shape) - rank + i), lowering.size(stride[i]))
        starts.append(lowering.op("sub", torch.int64, first, size_const(lowering, lowering.size(padding[i]))))
    return [out, place_of_tap(lowering, tap, starts, kernels, image, dilation, padding)]


def times(lowering: Lowering, index: Lazy, factor: Size) -> Lazy:
    return index if factor == 1 else lowering.op("mul", torch.int64, index, size_const(lowering, factor))


def place_of_tap(
    lowering: Lowering,
    tap: Lazy,
    starts: list[Lazy],
    kernels: list[Size],
    image: Any,
    dilation: list[Any],
    padding: list[Any],
) -> Lazy:
    """The flat place in the image of a window's tap. Of a window whose every pixel is as small as the padding, the tap
    may be in the padding: it stands for the first pixel inside the image."""
    tap, place, integer = lowering.share(tap), None, torch.int64
    for i, first in enumerate(starts):
        inner = lowering.sizes.product(kernels[i + 1 :])
        at = tap if inner == 1 else lowering.op("floordiv", integer, tap, size_const(lowering, inner))
        if i:
            at = lowering.op("floormod", integer, at, size_const(lowering, kernels[i]))
        at = lowering.op("add", integer, first, times(lowering, at, lowering.size(dilation[i])))
        if padding[i] != 0:
            inside = size_const(lowering, ir.ZERO)
            if dilation[i] != 1:
                inside = lowering.op("floormod", integer, first, size_const(lowering, lowering.size(dilation[i])))
            negative = lowering.op("lt", torch.bool, at, size_const(lowering, ir.ZERO))
            at = lowering.op("where", integer, negative, inside, at)
        place = at if place is None else lowering.op("add", integer, times(lowering, place, image[i]), at)
    return place


@lowers("avg_pool1d", "avg_pool2d", "avg_pool3d")
def avg_pool(
    lowering: Lowering,
    x: Lazy,
    kernel: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    include_pad: bool = True,
    divisor: Any = None,
) -> Lazy:
    rank = int(lowering.label[8])
    kernel = listed(kernel, rank)
    stride, padding = listed(stride, rank, kernel), listed(padding, rank)
    shape = x.shape
    x, kernels, _outs = windows(lowering, x, rank, kernel, stride, padding, [1] * rank, 0.0)
    dims = list(range(len(x.shape) - rank, len(x.shape)))
    wide = accumulated(x.dtype)
    out = lowering.reduce("sum", lowering.cast(x, wide), dims, wide)
    if divisor is not None:
        n: Any = lowering.const(float(divisor), wide)
    elif (include_pad and not ceil_mode) or (all(p == 0 for p in padding) and not ceil_mode):
        total = lowering.sizes.product(kernels)
        n = Lazy(ir.Const(wide, "", total if not total.is_Integer else int(total)), ())
    else:
        n = covered(lowering, out.shape, shape, kernels, stride, padding, include_pad)
    return lowering.cast(lowering.op("div", wide, out, n, hint="mean"), out_dtype(lowering))


def covered(
    lowering: Lowering,
    out: Any,
    shape: Any,
    kernels: list[Size],
    stride: list[Any],
    padding: list[Any],
    include_pad: bool,
) -> Lazy:
    """How many elements each window covers: without the padding, or with it."""
    rank, lead, n = len(kernels), len(out) - len(kernels), None
    for i in range(rank):
        d, p = lead + i, lowering.size(padding[i])
        first = lowering.iota(out, d)
        first = lowering.op("mul", torch.int64, first, size_const(lowering, lowering.size(stride[i])))
        first = lowering.op("sub", torch.int64, first, size_const(lowering, p))
        last = lowering.op("add", torch.int64, first, size_const(lowering, kernels[i]))
        limit = shape[len(shape) - rank + i] + (p if include_pad else 0)
        last = lowering.op("minimum", torch.int64, last, size_const(lowering, limit))
        if not include_pad:
            first = lowering.op("maximum", torch.int64, first, size_const(lowering, ir.ZERO))
        extent = lowering.op("sub", torch.int64, last, first)
        n = extent if n is None else lowering.op("mul", torch.int64, n, extent)
    return lowering.cast(n, torch.float32)


@lowers(
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
    "_adaptive_avg_pool2d",
    "_adaptive_avg_pool3d",
)
def adaptive_pool(lowering: Lowering, x: Lazy, size: Any) -> Any:
    rank = int(lowering.label[-2])
    lead, is_max = len(x.shape) - rank, "max" in lowering.label
    metas = lowering.meta
    if is_max:
        lowering.meta = [m[0] for m in metas]
    outs = [known(lowering, lead + i) for i in range(rank)]
    olds, image = [lowering.sizes.of(s) for s in x.shape[lead:]], x.shape[lead:]
    places = None
    if any(set(o) == {1} for o in outs) and all(set(o) == {1} for o in outs):
        dims = list(range(lead, len(x.shape)))
        out = pool_reduce(lowering, x, dims, is_max, keepdim=True)
        if is_max:
            flat = reshape_to(lowering, lowering.share(x), (*x.shape[:lead], lowering.sizes.product(image)))
            places = lowering.reduce("argmax", flat, [lead], torch.int64, keepdim=True, name="place")
            for _ in range(rank - 1):
                places = unsqueeze(places, lead)
    elif all(i % o == 0 for out, old in zip(outs, olds, strict=True) for o, i in zip(out, old, strict=True)):
        shape, dims, parts = list(x.shape[:lead]), [], []
        for s, o in zip(image, outs, strict=True):
            positions = lowering.sizes.find(o, [s] if lowering.sizes.of(s) == o else [])
            parts.append(lowering.sizes.quotient(s, positions))
            shape += [positions, parts[-1]]
            dims.append(len(shape) - 1)
        x = reshape_to(lowering, lowering.share(x), tuple(shape))
        out = pool_reduce(lowering, x, dims, is_max)
        if is_max:
            tap = lowering.reduce("argmax", x, dims, torch.int64, name="tap")
            starts = [times(lowering, lowering.iota(out.shape, lead + i), parts[i]) for i in range(rank)]
            places = place_of_tap(lowering, tap, starts, parts, image, [1] * rank, [0] * rank)
    else:
        out, places = uneven_pool(lowering, x, outs, is_max)
    lowering.meta = metas
    return [out, places] if is_max else out


def pool_reduce(lowering: Lowering, x: Lazy, dims: list[int], is_max: bool, keepdim: bool = False) -> Lazy:
    if is_max:
        return lowering.reduce("max", x, dims, x.dtype, keepdim)
    wide = accumulated(x.dtype)
    out = lowering.reduce("sum", lowering.cast(x, wide), dims, wide, keepdim)
    return lowering.cast(lowering.op("div", wide, out, count(lowering, x, dims), hint="mean"), x.dtype)


def uneven_pool(lowering: Lowering, x: Lazy, outs: list[tuple[int, ...]], is_max: bool) -> tuple[Lazy, Any]:
    """Windows of different lengths: from floor(i * n / m) to ceil((i + 1) * n / m)."""
    x = lowering.realise(x)
    rank, lead = len(outs), len(x.shape) - len(outs)
    sizes = [lowering.sizes.find(o) for o in outs]
    taps = []
    for size, out in zip(x.shape[lead:], outs, strict=True):
        longest = max(
            -(-(i + 1) * n // m) - i * n // m
            for n, m in zip(lowering.sizes.of(size), out, strict=True)
            for i in range(m)
        )
        taps.append(lowering.size(longest))
    shape = (*x.shape[:lead], *sizes, *taps)
    index, inside, extent = [lowering.iota(shape, d) for d in range(lead)], None, None
    starts: list[Lazy] = []
    integer, pooled = torch.int64, shape[: lead + rank]
    for i in range(rank):
        n, m = (size_const(lowering, s) for s in (x.shape[lead + i], sizes[i]))
        at = lowering.iota(shape, lead + i)
        first = lowering.op("floordiv", integer, lowering.op("mul", integer, at, n), m)
        stop = lowering.op("mul", integer, lowering.op("add", integer, at, 1), n)
        stop = lowering.op("floordiv", integer, lowering.op("sub", integer, lowering.op("add", integer, stop, m), 1), m)
        place = lowering.op("add", integer, first, lowering.iota(shape, lead + rank + i))
        good = lowering.op("lt", torch.bool, place, stop)
        inside = good if inside is None else lowering.op("and", torch.bool, inside, good)
        length = lowering.op("sub", integer, stop, first)
        extent = length if extent is None else lowering.op("mul", integer, extent, length)
        last = size_const(lowering, x.shape[lead + i] - 1)
        index.append(lowering.op("minimum", integer, place, last))
        begin = lowering.op("mul", integer, lowering.iota(pooled, lead + i), n)
        starts.append(lowering.op("floordiv", integer, begin, m))
    picked = gather(lowering, x, index)
    dims = list(range(lead + rank, lead + 2 * rank))
    if is_max:
        low = lowering.const(-math.inf, x.dtype)
        windowed = lowering.op("where", x.dtype, inside, picked, low)
        out = lowering.reduce("max", windowed, dims, x.dtype)
        tap = lowering.reduce("argmax", windowed, dims, integer, name="tap")
        return out, place_of_tap(lowering, tap, starts, taps, x.shape[lead:], [1] * rank, [0] * rank)
    wide = accumulated(x.dtype)
    share = lowering.op("div", wide, lowering.cast(picked, wide), lowering.cast(extent, wide))
    share = lowering.op("where", wide, inside, share, lowering.const(0.0, wide))
    return lowering.cast(lowering.reduce("sum", share, dims, wide), out_dtype(lowering)), None
