"""Rules of views, joins and indexing."""

from __future__ import annotations

import itertools
from typing import Any

import torch

from tilewright.teacher import ir
from tilewright.teacher.builder import gather, unsqueeze
from tilewright.teacher.ir import Lazy, Read, View
from tilewright.teacher.lower import Lowering, flatten
from tilewright.teacher.ops_pointwise import out_dtype
from tilewright.teacher.rules import lowers
from tilewright.teacher.sizes import Size, Unsupported


def known(lowering: Lowering, axis: int, k: int | None = None) -> tuple[int, ...]:
    """The extent of the result along an axis in each case, as traced."""
    return tuple(int((m if k is None else m[k]).shape[axis]) for m in lowering.meta)


def target_shape(lowering: Lowering, lazy: Lazy, rank: int, k: int | None = None) -> tuple[Size, ...]:
    """Formulas for the shape of a reshape: products of the old extents from either end where they agree."""
    sizes, result = lowering.sizes, []
    rest = list(lazy.shape)
    total = sizes.product(rest)
    hints = hints_of(lowering, lazy)
    for axis in range(rank):
        values = known(lowering, axis, k)
        if set(values) == {1}:
            result.append(ir.ONE)
            continue
        found, rest = leading(lowering, values, rest, hints)
        result.append(found if found is not None else lowering.sizes.find(values, hints))
    if not sizes.same(sizes.product(result), total):
        result = [sizes.find(known(lowering, axis, k), hints) for axis in range(rank)]
    return tuple(result)


def leading(
    lowering: Lowering, values: tuple[int, ...], rest: list[Size], hints: list[Size]
) -> tuple[Size | None, list[Size]]:
    """A formula for an extent as a product of the next old ones, the last of them in part; and what is left of them."""
    sizes, product, at = lowering.sizes, ir.ONE, 0
    while at < len(rest) and sizes.of(product) != values and divides_values(sizes.of(product * rest[at]), values):
        product = product * rest[at]
        at += 1
    if sizes.of(product) == values:
        return product, rest[at:]
    part = tuple(v // p if p and v % p == 0 else 0 for v, p in zip(values, sizes.of(product), strict=True))
    if at == len(rest) or 0 in part or any(r % p for p, r in zip(part, sizes.of(rest[at]), strict=True)):
        return None, []
    found = split_size(lowering, part, rest[at], hints)
    return product * found, [sizes.quotient(rest[at], found), *rest[at + 1 :]]


def divides_values(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """Whether each number divides its partner."""
    return all(x and y % x == 0 for x, y in zip(a, b, strict=True))


def split_size(lowering: Lowering, values: tuple[int, ...], whole: Size, hints: list[Size]) -> Size:
    """A formula for one part of an extent that a reshape splits."""
    if len(set(values)) > 1:
        other = tuple(w // v if v else 0 for v, w in zip(values, lowering.sizes.of(whole), strict=True))
        if len(set(other)) == 1:
            return lowering.sizes.quotient(whole, lowering.size(other[0]))
    from tilewright.teacher.host_numbers import Varying

    return lowering.size(Varying(values) if len(set(values)) > 1 else values[0], hints)


def hints_of(lowering: Lowering, lazy: Lazy) -> list[Size]:
    return [s for s in lazy.shape if not s.is_Integer]


@lowers(
    "view",
    "reshape",
    "_unsafe_view",
    "flatten",
    "unflatten",
    "view_as",
    "reshape_as",
    "ravel",
    "_reshape_alias",
    view=True,
)
def view(lowering: Lowering, x: Lazy, *args: Any) -> Lazy:
    if lowering.label == "view" and args and isinstance(args[0], torch.dtype):
        raise Unsupported("a view under another dtype")
    shape = target_shape(lowering, x, lowering.meta[0].dim())
    return reshape_to(lowering, x, shape)


def reshape_to(lowering: Lowering, x: Lazy, shape: tuple[Size, ...]) -> Lazy:
    """Another shape of the same elements."""
    if not isinstance(x.term, Read) and has_mixed(x, lowering, shape):
        x = lowering.realise_again(x)
    try:
        return lowering.view(x, lambda v: v.reshape(shape, lowering.sizes))
    except ir.NotAffine:  # no boundary in common: by way of one dimension
        flat = lowering.temp((lowering.sizes.product(x.shape),), x.dtype, x.term.name or lowering.label)
        lowering.add(ir.Pointwise(lowering.label, [flat], x.term))
        return lowering.view(lowering.read(flat), lambda v: v.reshape(shape, lowering.sizes))


def has_mixed(x: Lazy, lowering: Lowering, shape: tuple[Size, ...]) -> bool:
    """Whether some read of a term cannot follow a reshape."""
    try:
        for read in ir.reads(x.term):
            read.view.reshape(shape, lowering.sizes)
    except ir.NotAffine:
        return True
    return False


@lowers("permute", "transpose", "t", "numpy_T", "movedim", "swapaxes", "mT", view=True)
def permute(lowering: Lowering, x: Lazy, *args: Any) -> Lazy:
    rank = len(x.shape)
    order = list(range(rank))
    if lowering.label == "permute":
        order = [d % rank for d in args[0]]
    elif lowering.label in ("transpose", "swapaxes"):
        a, b = args[0] % rank, args[1] % rank
        order[a], order[b] = order[b], order[a]
    elif lowering.label == "movedim":
        sources = args[0] if isinstance(args[0], list) else [args[0]]
        targets = args[1] if isinstance(args[1], list) else [args[1]]
        sources, targets = [s % rank for s in sources], [t % rank for t in targets]
        order = [d for d in range(rank) if d not in sources]
        for target, source in sorted(zip(targets, sources, strict=True)):
            order.insert(target, source)
    elif lowering.label == "mT":
        order[-2:] = order[-1], order[-2]
    else:
        order = order[::-1]
    return lowering.view(x, lambda v: v.permute(order))


@lowers("unsqueeze", view=True)
def unsqueeze_rule(lowering: Lowering, x: Lazy, dim: int) -> Lazy:
    return unsqueeze(x, dim % (len(x.shape) + 1))


@lowers("squeeze", view=True)
def squeeze(lowering: Lowering, x: Lazy, dim: Any = None) -> Lazy:
    rank = len(x.shape)
    if not rank:
        return x
    dims = range(rank) if dim is None else [d % rank for d in (dim if isinstance(dim, list) else [dim])]
    for d in sorted(dims, reverse=True):
        if lowering.sizes.is_one(x.shape[d]):
            x = lowering.view(x, lambda v, d=d: v.squeeze(d))
        elif 1 in lowering.sizes.of(x.shape[d]):
            raise Unsupported("squeeze of a dimension that is 1 in some cases only")
    return x


@lowers("expand", "expand_as", "broadcast_to", view=True)
def expand(lowering: Lowering, x: Lazy, other: Any, **_: Any) -> Lazy:
    rank = lowering.meta[0].dim()
    if isinstance(other, Lazy):
        return lowering.expand(x, other.shape)
    old = [ir.ONE] * (rank - len(x.shape)) + list(x.shape)
    shape = []
    for axis in range(rank):
        values = known(lowering, axis)
        shape.append(old[axis] if lowering.sizes.of(old[axis]) == values else lowering.sizes.find(values))
    return lowering.expand(x, tuple(shape))


@lowers("slice", "narrow", view=True)
def slice_rule(lowering: Lowering, x: Lazy, dim: int = 0, start: Any = None, end: Any = None, step: Any = 1) -> Lazy:
    dim = dim % len(x.shape)
    if isinstance(start, Lazy):
        raise Unsupported("a slice that starts where a tensor says")
    sizes = lowering.sizes
    size = x.shape[dim]
    values = known(lowering, dim)
    old = sizes.of(size)
    start = 0 if start is None else start
    starts = start.values if hasattr(start, "values") else (start,) * len(values)
    starts = tuple(min(max(s + o if s < 0 else s, 0), o) for s, o in zip(starts, old, strict=True))
    step = lowering.plain(step, "the step of a slice")
    if values == old and step == 1:
        return x
    at = offset_size(lowering, starts, size)
    length = ir.ONE if set(values) == {1} else extent_size(lowering, values, size, at, step)
    part = lowering.view(x, lambda v: v.slice(dim, at, length, lowering.size(step)))
    return started(lowering, part, at, step)


def started(lowering: Lowering, part: Lazy, at: Size, step: int) -> Lazy:
    """Notes where a slice lies, for operations that write to it."""
    lowering.starts[id(part)] = (at, step)
    lowering.keep.append(part)
    return part


def offset_size(lowering: Lowering, starts: tuple[int, ...], size: Size) -> Size:
    """A formula for where a slice starts."""
    from_end = tuple(o - s for s, o in zip(starts, lowering.sizes.of(size), strict=True))
    if len(set(starts)) > 1 and len(set(from_end)) == 1:
        return size - from_end[0]
    return lowering.sizes.find(starts, [size])


def extent_size(lowering: Lowering, values: tuple[int, ...], size: Size, at: Size, step: int) -> Size:
    """A formula for how many elements a slice has."""
    rest = tuple(-(-(o - s) // step) for o, s in zip(lowering.sizes.of(size), lowering.sizes.of(at), strict=True))
    if rest == values and not (len(set(values)) == 1 and lowering.sizes.cases > 1):
        if step == 1:
            return size - at
        return ir_ceil_div(size - at, step)
    return lowering.sizes.find(values, [size])


def ir_ceil_div(size: Size, step: int) -> Size:
    from tilewright.teacher.sizes import FloorDiv

    return FloorDiv(size + step - 1, lowering_int(step))


def lowering_int(number: int) -> Size:
    import sympy

    return sympy.Integer(number)


@lowers("select", view=True)
def select(lowering: Lowering, x: Lazy, dim: int, index: Any) -> Lazy:
    dim = dim % len(x.shape)
    values = index.values if hasattr(index, "values") else (index,) * lowering.sizes.cases
    old = lowering.sizes.of(x.shape[dim])
    at = offset_size(lowering, tuple(v + o if v < 0 else v for v, o in zip(values, old, strict=True)), x.shape[dim])
    return started(lowering, lowering.view(x, lambda v: v.select(dim, at)), at, 1)


@lowers("split", "split_with_sizes", "chunk", "tensor_split", "unbind", "unsafe_chunk", "unsafe_split", view=True)
def split(lowering: Lowering, x: Lazy, *args: Any, **kwargs: Any) -> list[Lazy]:
    count = len(lowering.meta[0])
    label = lowering.label
    if label == "unbind":
        dim = (args[0] if args else kwargs.get("dim", 0)) % len(x.shape)
        return [lowering.view(x, lambda v, i=i: v.select(dim, lowering_int(i))) for i in range(count)]
    dim = (args[1] if len(args) > 1 else kwargs.get("dim", 0)) % len(x.shape)
    sizes, parts, start = lowering.sizes, [], ir.ZERO
    even = all(len({int(part.shape[dim]) for part in meta}) == 1 for meta in lowering.meta)
    for k in range(count):
        values = known(lowering, dim, k)
        if even and count > 1:
            length = sizes.quotient(x.shape[dim], lowering_int(count))
        else:
            rest = x.shape[dim] - start
            length = sizes.find(values, [rest] if sizes.of(rest) == values and len(set(values)) > 1 else [])
        parts.append(lowering.view(x, lambda v, a=start, b=length: v.slice(dim, a, b)))
        start = start + length
    return parts


@lowers("flip")
def flip(lowering: Lowering, x: Lazy, dims: list[int]) -> Lazy:
    for dim in dims:
        at = dim % len(x.shape)
        x = lowering.view(x, lambda v, d=at: v.flip(d))
    return x


@lowers("roll")
def roll(lowering: Lowering, x: Lazy, shifts: Any, dims: Any = ()) -> Lazy:
    shifts, dims = (list(a) if isinstance(a, list | tuple) else [a] for a in (shifts, dims))
    if not dims:
        shape = x.shape
        flat = reshape_to(lowering, lowering.share(x), (lowering.sizes.product(shape),))
        return reshape_to(lowering, roll(lowering, flat, shifts, [0]), shape)
    for shift, dim in zip(shifts, dims, strict=True):
        d = dim % len(x.shape)
        size = x.shape[d]
        extents = lowering.sizes.of(size)
        values = shift.values if hasattr(shift, "values") else (shift,) * len(extents)
        within = tuple(v % max(e, 1) for v, e in zip(values, extents, strict=True))
        if not any(within):
            continue
        shift = offset_size(lowering, within, size)
        x = lowering.share(x)
        tail = lowering.view(x, lambda v, d=d, s=size, k=shift: v.slice(d, s - k, k))
        head = lowering.view(x, lambda v, d=d, s=size, k=shift: v.slice(d, ir.ZERO, s - k))
        x = join(lowering, [tail, head], d)
    return x


@lowers("cat", "concat", "concatenate")
def cat(lowering: Lowering, tensors: list[Lazy], dim: int = 0) -> Lazy:
    tensors = [lowering.cast(t, out_dtype(lowering)) for t in tensors if not is_legacy_empty(lowering, t)]
    return join(lowering, tensors, dim % len(tensors[0].shape))


def is_legacy_empty(lowering: Lowering, x: Lazy) -> bool:
    return len(x.shape) == 1 and set(lowering.sizes.of(x.shape[0])) == {0}


@lowers("stack")
def stack(lowering: Lowering, tensors: list[Lazy], dim: int = 0) -> Lazy:
    dim = dim % (len(tensors[0].shape) + 1)
    tensors = [unsqueeze(lowering.cast(t, out_dtype(lowering)), dim) for t in tensors]
    return join(lowering, tensors, dim)


def join(lowering: Lowering, parts: list[Lazy], dim: int) -> Lazy:
    """Concatenation: each part is read where the index lies in it."""
    if len(parts) == 1:
        return parts[0]
    total = sum((p.shape[dim] for p in parts), ir.ZERO)
    shape = tuple(total if i == dim else s for i, s in enumerate(parts[0].shape))
    position = lowering.iota(shape, dim)
    result, start = None, ir.ZERO
    for part in parts:
        length = part.shape[dim]
        part = lowering.realise(part) if not isinstance(part.term, Read) or part.term.view.guards else part
        before, after = start, total - start - length
        try:
            placed = lowering.view(part, lambda v, b=before, a=after: v.pad(dim, b, a, 0))
        except ir.NotAffine:
            placed = lowering.view(lowering.realise_again(part), lambda v, b=before, a=after: v.pad(dim, b, a, 0))
        placed = Lazy(placed.term, shape)
        if result is None:
            result = placed
        else:
            bound = lowering.const(0, torch.int64)
            bound = size_const(lowering, start)
            inside = lowering.op("ge", torch.bool, position, bound)
            result = lowering.op("where", part.dtype, inside, placed, result, hint="joined")
        start = start + length
    return result


def size_const(lowering: Lowering, size: Size) -> Lazy:
    """A size as an element-wise constant."""
    return Lazy(ir.Const(torch.int64, "", size if not size.is_Integer else int(size)), ())


@lowers("repeat", "tile")
def repeat(lowering: Lowering, x: Lazy, times: list[Any]) -> Lazy:
    for _ in range(len(times) - len(x.shape)):
        x = unsqueeze(x, 0)
    times = [1] * (len(x.shape) - len(times)) + list(times)
    for dim, n in enumerate(times):
        if n != 1:
            n = lowering.size(n)
            x = lowering.view(x, lambda v, d=dim, n=n: v.repeat_outer(d, n))
    return x


@lowers("repeat_interleave")
def repeat_interleave(lowering: Lowering, x: Lazy, times: Any, dim: int | None = None, output_size: Any = None) -> Lazy:
    if isinstance(times, Lazy) or dim is None:
        raise Unsupported("repeat_interleave with computed counts")
    n = lowering.size(times)
    return lowering.view(x, lambda v: v.repeat_inner(dim % len(x.shape), n))


@lowers("constant_pad_nd", "pad")
def pad(lowering: Lowering, x: Lazy, amounts: list[Any], mode: Any = "constant", value: Any = 0) -> Lazy:
    if lowering.label == "constant_pad_nd":
        mode, value = "constant", mode if not isinstance(mode, str) else 0
    value = 0 if value is None else value
    if mode != "constant":
        return mirrored_pad(lowering, x, amounts, mode)
    x = lowering.realise(x) if not isinstance(x.term, Read) else x
    for i in range(len(amounts) // 2):
        dim = len(x.shape) - 1 - i
        before, after = (lowering.size(a) for a in amounts[2 * i : 2 * i + 2])
        if before == 0 and after == 0:
            continue
        x = lowering.view(x, lambda v, d=dim, b=before, a=after: v.pad(d, b, a, value))
    return x


def mirrored_pad(lowering: Lowering, x: Lazy, amounts: list[Any], mode: str) -> Lazy:
    """Reflecting, repeating or wrapping borders: reads at computed indices."""
    x = lowering.realise(x)
    pads = {len(x.shape) - 1 - i: amounts[2 * i : 2 * i + 2] for i in range(len(amounts) // 2)}
    shape = tuple(
        s + lowering.size(pads[d][0]) + lowering.size(pads[d][1]) if d in pads else s for d, s in enumerate(x.shape)
    )
    index = []
    for d, size in enumerate(x.shape):
        at = lowering.iota(shape, d)
        if d in pads:
            last = size_const(lowering, size - 1)
            at = lowering.op("sub", torch.int64, at, size_const(lowering, lowering.size(pads[d][0])))
            if mode == "reflect":
                at = lowering.op("abs", torch.int64, at)
                over = lowering.op("sub", torch.int64, at, last)
                back = lowering.op("sub", torch.int64, last, lowering.op("abs", torch.int64, over))
                at = lowering.op("where", torch.int64, lowering.op("gt", torch.bool, at, last), back, at)
            elif mode == "replicate":
                at = lowering.op("minimum", torch.int64, at, last)
                at = lowering.op("maximum", torch.int64, at, lowering.const(0, torch.int64))
            else:
                extent = size_const(lowering, size)
                at = lowering.op("floormod", torch.int64, at, extent)
        index.append(at)
    return gather(lowering, x, index)


@lowers(
    "reflection_pad1d",
    "reflection_pad2d",
    "reflection_pad3d",
    "replication_pad1d",
    "replication_pad2d",
    "replication_pad3d",
)
def border_pad(lowering: Lowering, x: Lazy, amounts: list[Any]) -> Lazy:
    return mirrored_pad(lowering, x, amounts, "reflect" if lowering.label.startswith("refl") else "replicate")


@lowers("tril", "triu")
def triangle(lowering: Lowering, x: Lazy, diagonal: Any = 0) -> Lazy:
    rank = len(x.shape)
    row, col = lowering.iota(x.shape, rank - 2), lowering.iota(x.shape, rank - 1)
    if diagonal != 0:
        row = lowering.op("add", torch.int64, row, lowering.const(diagonal, torch.int64))
    keep = lowering.op("le" if lowering.label == "tril" else "ge", torch.bool, col, row)
    return lowering.op("where", x.dtype, keep, x, lowering.const(0, x.dtype), hint=lowering.label)


@lowers("diagonal", view=True)
def diagonal(lowering: Lowering, x: Lazy, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Lazy:
    if offset != 0:
        raise Unsupported("a diagonal that is not the main one")
    rank = len(x.shape)
    length = lowering.sizes.find(known(lowering, lowering.meta[0].dim() - 1), list(x.shape))
    return lowering.view(x, lambda v: v.diagonal(dim1 % rank, dim2 % rank, length))


@lowers("diag_embed", "diag")
def diag_embed(lowering: Lowering, x: Lazy, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Lazy:
    if lowering.label == "diag" and len(x.shape) == 2:
        return diagonal(lowering, x, offset)
    rank = len(x.shape) + 1
    if offset != 0 or {dim1 % rank, dim2 % rank} != {rank - 2, rank - 1}:
        raise Unsupported("diag_embed with other dimensions")
    shape = (*x.shape, x.shape[-1])
    row, col = lowering.iota(shape, len(shape) - 2), lowering.iota(shape, len(shape) - 1)
    spread = lowering.expand(unsqueeze(x, len(shape) - 1), shape)
    equal = lowering.op("eq", torch.bool, row, col)
    made = lowering.op("where", x.dtype, equal, spread, lowering.const(0, x.dtype), hint="diagonal")
    lowering.diagonals[id(made)] = x
    lowering.keep.append(made)
    return made


@lowers("unfold", view=True)
def unfold(lowering: Lowering, x: Lazy, dim: int, size: Any, step: Any) -> Lazy:
    dim = dim % len(x.shape)
    out = lowering.sizes.find(known(lowering, dim))
    kernel, stride = lowering.size(size), lowering.size(step)
    return lowering.view(x, lambda v: v.window(dim, out, kernel, stride, ir.ONE))


@lowers("pixel_shuffle")
def pixel_shuffle(lowering: Lowering, x: Lazy, factor: Any) -> Lazy:
    r = lowering.size(factor)
    if len(x.shape) != 4:
        raise Unsupported("pixel_shuffle of other than four dimensions")
    n, c, h, w = x.shape
    x = reshape_to(lowering, x, (n, lowering.sizes.quotient(c, r * r), r, r, h, w))
    x = lowering.view(x, lambda v: v.permute([0, 1, 4, 2, 5, 3]))
    return reshape_to(lowering, x, (n, lowering.sizes.quotient(c, r * r), h * r, w * r))


@lowers("upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d")
def upsample_nearest(lowering: Lowering, x: Lazy, size: Any = None, *scales: Any) -> Lazy:
    spatial = range(2, len(x.shape))
    factors = flatten(scales)
    for d, scale in itertools.zip_longest(spatial, factors):
        check_nearest(lowering, lowering.sizes.of(x.shape[d]), known(lowering, d), scale)
    for d in spatial:
        out, old = known(lowering, d), lowering.sizes.of(x.shape[d])
        factors = {o // i for o, i in zip(out, old, strict=True)}
        if len(factors) != 1 or any(o % i for o, i in zip(out, old, strict=True)):
            return nearest_by_index(lowering, x)
        factor = lowering_int(factors.pop())
        x = lowering.view(x, lambda v, d=d, n=factor: v.repeat_inner(d, n))
    return x


def check_nearest(lowering: Lowering, old: tuple[int, ...], new: tuple[int, ...], scale: Any) -> None:
    """Torch reads at `floor(i / scale)` in float32, the rules here at `i * old // new`: both must be one place."""
    scales = scale.values if hasattr(scale, "values") else (scale,) * len(old)
    for n, m, factor in zip(old, new, scales, strict=True):
        places = torch.arange(n, dtype=torch.float32)[None, None]
        torchs = torch.ops.aten.upsample_nearest1d(places, [m], factor)[0, 0]
        if not torch.equal(torchs.long(), torch.arange(m) * n // m):
            raise Unsupported(f"{lowering.label} from {n} to {m} by a factor of {factor}")


def nearest_by_index(lowering: Lowering, x: Lazy) -> Lazy:
    x = lowering.realise(x)
    shape = (*x.shape[:2], *(lowering.sizes.find(known(lowering, d)) for d in range(2, len(x.shape))))
    index = []
    for d, size in enumerate(x.shape):
        at = lowering.iota(shape, d)
        if d >= 2:
            at = lowering.op("mul", torch.int64, at, size_const(lowering, size))
            at = lowering.op("floordiv", torch.int64, at, size_const(lowering, shape[d]))
        index.append(at)
    return gather(lowering, x, index)


@lowers("embedding")
def embedding(lowering: Lowering, weight: Lazy, index: Lazy, *_: Any) -> Lazy:
    weight = lowering.realise(weight)
    index = unsqueeze(index, len(index.shape))
    shape = (*index.shape[:-1], weight.shape[1])
    return gather(lowering, weight, [lowering.expand(index, shape), lowering.iota(shape, len(shape) - 1)])


@lowers("gather")
def gather_rule(lowering: Lowering, x: Lazy, dim: int, index: Lazy, sparse_grad: bool = False) -> Lazy:
    x = lowering.realise(x)
    dim = dim % len(x.shape)
    found = [index if d == dim else lowering.iota(index.shape, d) for d in range(len(x.shape))]
    return gather(lowering, x, found)


@lowers("index_select")
def index_select(lowering: Lowering, x: Lazy, dim: int, index: Lazy) -> Lazy:
    x = lowering.realise(x)
    dim = dim % len(x.shape)
    shape = tuple(index.shape[0] if d == dim else s for d, s in enumerate(x.shape))
    placed = index
    for _ in range(len(shape) - dim - 1):
        placed = unsqueeze(placed, len(placed.shape))
    placed = lowering.expand(placed, shape)
    return gather(lowering, x, [placed if d == dim else lowering.iota(shape, d) for d in range(len(shape))])


@lowers("index")
def index_rule(lowering: Lowering, x: Lazy, indices: list[Any]) -> Lazy:
    x = lowering.realise(x)
    indices = list(indices) + [None] * (len(x.shape) - len(indices))
    used = [d for d, i in enumerate(indices) if i is not None]
    if any(indices[d].dtype in (torch.bool, torch.uint8) for d in used):
        raise Unsupported("indexing by a mask: the shape depends on data")
    block = lowering.broadcast_shape([indices[d].shape for d in used])
    together = used == list(range(used[0], used[-1] + 1))
    before = [d for d in range(len(x.shape)) if d not in used and (together and d < used[0])]
    after = [d for d in range(len(x.shape)) if d not in used and d not in before]
    shape = (*(x.shape[d] for d in before), *block, *(x.shape[d] for d in after))
    found = []
    for d, size in enumerate(x.shape):
        if d in used:
            at = indices[d]
            for _ in after:
                at = unsqueeze(at, len(at.shape))
            at = lowering.expand(at, shape)
            negative = lowering.op("lt", torch.bool, at, lowering.const(0, at.dtype))
            wrapped = lowering.op("add", torch.int64, lowering.cast(at, torch.int64), size_const(lowering, size))
            at = lowering.op("where", torch.int64, negative, wrapped, lowering.cast(at, torch.int64))
        elif d in before:
            at = lowering.iota(shape, before.index(d))
        else:
            at = lowering.iota(shape, len(before) + len(block) + after.index(d))
        found.append(at)
    return gather(lowering, x, found)


@lowers("one_hot")
def one_hot(lowering: Lowering, index: Lazy, classes: Any = -1) -> Lazy:
    shape = (*index.shape, lowering.sizes.find(known(lowering, lowering.meta[0].dim() - 1)))
    spread = lowering.expand(unsqueeze(index, len(index.shape)), shape)
    return lowering.cast(lowering.op("eq", torch.bool, spread, lowering.iota(shape, len(shape) - 1)), torch.int64)


def plain_view(lowering: Lowering, lazy: Lazy) -> View:
    """The elements in memory, contiguous in this order."""
    if isinstance(lazy.term, Read) and lazy.term.view.value.origin != "iota" and lazy.term.view.is_plain():
        return lazy.term.view
    return lowering.realise_again(lazy).term.view
