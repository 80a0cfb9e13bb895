"""Rules of reductions and of what is made of them: norms, softmax, losses, pooling, statistics."""

from __future__ import annotations

import math
from typing import Any

import torch

from tilewright.teacher import ir
from tilewright.teacher.ir import Lazy, Value
from tilewright.teacher.lower import Lowering, gather, lowers, unsqueeze
from tilewright.teacher.ops_pointwise import Calculator, out_dtype
from tilewright.teacher.ops_view import known, reshape_to, size_const
from tilewright.teacher.sizes import Size, Unsupported


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


def normalise(lowering: Lowering, x: Lazy, dims: list[int], eps: Any) -> tuple[Lazy, Lazy, Lazy]:
    """(x - mean) / sqrt(variance + eps), and the statistics."""
    mean, squares = moments(lowering, x, dims)
    wide = mean.dtype
    var = lowering.op("div", wide, squares, count(lowering, x, dims), hint="variance")
    scale = lowering.op("rsqrt", wide, lowering.op("add", wide, var, lowering.const(eps, wide)), hint="scale")
    centred = lowering.op("sub", wide, lowering.cast(x, wide), mean, hint="centred")
    return lowering.op("mul", wide, centred, scale, hint="normalised"), mean, squares


def affine(lowering: Lowering, x: Lazy, weight: Any, bias: Any) -> Lazy:
    if weight is not None:
        x = lowering.op("mul", x.dtype, x, lowering.cast(weight, x.dtype), hint="scaled")
    if bias is not None:
        x = lowering.op("add", x.dtype, x, lowering.cast(bias, x.dtype), hint="shifted")
    return x


@lowers("layer_norm")
def layer_norm(
    lowering: Lowering, x: Lazy, shape: list[Any], weight: Any = None, bias: Any = None, eps: float = 1e-5, *_: Any
) -> Lazy:
    x = lowering.share(x)
    out, _, _ = normalise(lowering, x, last_dims(x, shape), eps)
    return lowering.cast(affine(lowering, out, weight, bias), out_dtype(lowering))


@lowers("rms_norm")
def rms_norm(
    lowering: Lowering, x: Lazy, shape: list[Any], weight: Any = None, eps: float | None = None, *_: Any
) -> Lazy:
    x = lowering.share(x)
    c = Calculator(lowering, x, accumulated(x.dtype))
    squares = lowering.reduce("sum", c("mul", c.x, c.x, hint="square"), last_dims(x, shape), c.dtype, keepdim=True)
    mean = c("div", squares, count(lowering, x, last_dims(x, shape)), hint="mean_square")
    # Without eps, aten takes that of the type it computes in.
    added = torch.finfo(c.dtype).eps if eps is None else eps
    out = c("mul", c.x, c("rsqrt", c("add", mean, added), hint="scale"))
    return lowering.cast(affine(lowering, out, weight, None), out_dtype(lowering))


def last_dims(x: Lazy, shape: list[Any]) -> list[int]:
    """The dimensions that `shape` stands for: the last ones."""
    return list(range(len(x.shape) - len(shape), len(x.shape)))


@lowers("group_norm")
def group_norm(
    lowering: Lowering, x: Lazy, groups: Any, weight: Any = None, bias: Any = None, eps: Any = 1e-5, *_: Any
) -> Lazy:
    shape = x.shape
    n, c, inner = shape[0], shape[1], lowering.sizes.product(shape[2:])
    g = lowering.size(groups)
    each = lowering.sizes.derive("group_channels", lowering.sizes.quotient(c, g))
    x = reshape_to(lowering, lowering.share(x), (n, g, each, inner))
    out, _, _ = normalise(lowering, x, [2, 3], eps)
    split = [None if w is None else unsqueeze(reshape_to(lowering, w, (g, each)), 2) for w in (weight, bias)]
    out = lowering.cast(affine(lowering, out, *split), out_dtype(lowering))
    return reshape_to(lowering, out, shape)


@lowers("instance_norm")
def instance_norm(
    lowering: Lowering,
    x: Lazy,
    weight: Any,
    bias: Any,
    mean: Any,
    var: Any,
    use_input: bool,
    momentum: Any,
    eps: Any,
    *_: Any,
) -> Lazy:
    if not use_input:
        return batch_norm(lowering, x, weight, bias, mean, var, False, momentum, eps)
    x = lowering.share(x)
    dims = list(range(2, len(x.shape)))
    out, own_mean, squares = normalise(lowering, x, dims, eps)
    if mean is not None:
        wide = own_mean.dtype
        unbiased = lowering.op("div", wide, squares, lowering.op("sub", wide, count(lowering, x, dims), 1.0))
        batch = count(lowering, x, [0])
        for running, own in ((mean, own_mean), (var, unbiased)):
            new = lowering.reduce("sum", lowering.share(drop(lowering, own, dims)), [0], wide)
            write_running(lowering, running, lowering.op("div", wide, new, batch), momentum)
    split = [None if w is None else spread(lowering, w, len(x.shape), 1) for w in (weight, bias)]
    return lowering.cast(affine(lowering, out, *split), out_dtype(lowering))


def write_running(lowering: Lowering, running: Lazy, new: Lazy, momentum: Any) -> None:
    """A running statistic moves towards a new one."""
    wide = new.dtype
    step = lowering.op("mul", wide, lowering.op("sub", wide, new, running), lowering.const(momentum, wide))
    lowering.write_state(running, lowering.op("add", wide, running, step, hint="running"))


@lowers("batch_norm")
def batch_norm(
    lowering: Lowering,
    x: Lazy,
    weight: Any,
    bias: Any,
    mean: Any,
    var: Any,
    training: bool,
    momentum: Any,
    eps: Any,
    *_: Any,
) -> Lazy:
    rank = len(x.shape)
    split = [None if w is None else spread(lowering, w, rank, 1) for w in (weight, bias)]
    wide = accumulated(x.dtype)
    if not training:
        mean, var = (spread(lowering, v, rank, 1) for v in (mean, var))
        scale = lowering.op("rsqrt", wide, lowering.op("add", wide, var, lowering.const(eps, wide)), hint="scale")
        if split[0] is not None:
            scale = lowering.op("mul", wide, scale, lowering.cast(split[0], wide))
        out = lowering.op("mul", wide, lowering.op("sub", wide, lowering.cast(x, wide), mean, hint="centred"), scale)
        return lowering.cast(affine(lowering, out, None, split[1]), out_dtype(lowering))
    x = lowering.share(x)
    dims = [d for d in range(rank) if d != 1]
    out, batch_mean, squares = normalise(lowering, x, dims, eps)
    if mean is not None:
        n = count(lowering, x, dims)
        unbiased = lowering.op("div", wide, drop(lowering, squares, dims), lowering.op("sub", wide, n, 1.0))
        for running, new in ((mean, drop(lowering, batch_mean, dims)), (var, unbiased)):
            write_running(lowering, running, new, momentum)
    return lowering.cast(affine(lowering, out, *split), out_dtype(lowering))


@lowers("softmax", "_softmax", "log_softmax", "_log_softmax")
def softmax(lowering: Lowering, x: Lazy, dim: int, dtype: Any = None) -> Lazy:
    label = lowering.label
    c = Calculator(lowering, lowering.share(x), accumulated(out_dtype(lowering)))
    top = lowering.reduce("max", c.x, [dim], c.dtype, keepdim=True)
    shifted = c("sub", c.x, top, hint="shifted")
    weights = c("exp", shifted, hint="weights")
    sums = lowering.reduce("sum", weights, [dim], c.dtype, keepdim=True)
    out = c("sub", shifted, c("log", sums)) if "log" in label else c("div", weights, sums, hint="softmax")
    return lowering.cast(out, out_dtype(lowering))


def logsumexp_of(lowering: Lowering, x: Lazy, dims: list[int], keepdim: bool) -> Lazy:
    c = Calculator(lowering, lowering.share(x), accumulated(x.dtype))
    top = lowering.reduce("max", c.x, dims, c.dtype, keepdim=True)
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
    if (padding or -1) >= 0 or last or not even or any(n % r for n, r in zip(words_of, rows, strict=True)):
        raise Unsupported("bags of different lengths")
    count_bags = lowering.sizes.find(rows, [*starts.shape])
    length = lowering.sizes.quotient(words.shape[0], count_bags)
    table = lowering.realise(weight)
    words = reshape_to(lowering, lowering.share(words), (count_bags, length))
    shape = (count_bags, length, weight.shape[1])
    at = lowering.expand(unsqueeze(words, 2), shape)
    wide = accumulated(weight.dtype)
    picked = lowering.cast(gather(lowering, table.term.view.value, [at, lowering.iota(shape, 2)]), wide)
    if factors is not None:
        share = reshape_to(lowering, lowering.share(factors), (count_bags, length, ir.ONE))
        picked = lowering.op("mul", wide, picked, lowering.cast(share, wide))
    out = lowering.reduce("max" if mode == 2 else "sum", picked, [1], wide)
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


# losses -----------------------------------------------------------------------------------------------------------


def reduced(lowering: Lowering, loss: Lazy, reduction: int) -> Lazy:
    """none, mean or sum of a loss."""
    if reduction == 0:
        return lowering.cast(loss, out_dtype(lowering))
    dims = list(range(len(loss.shape)))
    wide = accumulated(loss.dtype)
    out = lowering.reduce("sum", loss, dims, wide, name="loss")
    if reduction == 1:
        out = lowering.op("div", wide, out, count(lowering, loss, dims), hint="mean")
    return lowering.cast(out, out_dtype(lowering))


@lowers("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
def distance_loss(lowering: Lowering, x: Lazy, y: Lazy, reduction: int = 1, delta: Any = 1.0) -> Lazy:
    label = lowering.label
    c = Calculator(lowering, x, accumulated(x.dtype))
    gap = c("sub", c.x, lowering.cast(y, c.dtype), hint="gap")
    if label == "mse_loss":
        return reduced(lowering, c("mul", gap, gap, hint="square"), reduction)
    size = c("abs", gap, hint="size")
    if label == "l1_loss" or delta == 0:
        return reduced(lowering, size, reduction)
    square = c("mul", c("mul", gap, gap), 0.5)
    near, far = square, c("mul", c("sub", size, 0.5 * delta), delta)
    if label == "smooth_l1_loss":
        near, far = c("div", square, delta), c("sub", size, 0.5 * delta)
    loss = lowering.op("where", c.dtype, c("lt", size, delta), near, far, hint=label)
    return reduced(lowering, loss, reduction)


@lowers("nll_loss_nd", "nll_loss", "nll_loss2d", "cross_entropy_loss")
def cross_entropy(
    lowering: Lowering,
    x: Lazy,
    target: Lazy,
    weight: Any = None,
    reduction: int = 1,
    ignored: Any = -100,
    smoothing: Any = 0.0,
) -> Lazy:
    label, result = lowering.label, out_dtype(lowering)
    axis = 1 if len(x.shape) > 1 else 0
    x = lowering.realise(x)
    wide = accumulated(x.dtype)
    c = Calculator(lowering, x, wide)
    log_sum = logsumexp_of(lowering, x, [axis], keepdim=False) if label == "cross_entropy_loss" else None
    if target.dtype.is_floating_point:
        if log_sum is None:
            raise Unsupported(f"{label} of probabilities")
        if smoothing:
            share = c("div", smoothing, count(lowering, x, [axis]), hint="share")
            target = c("add", c("mul", lowering.cast(target, wide), 1.0 - smoothing), share)
        if weight is not None:
            target = lowering.op("mul", wide, lowering.cast(target, wide), spread(lowering, weight, len(x.shape), axis))
        return soft_cross_entropy(lowering, c, target, log_sum, axis, reduction)
    target = lowering.share(target)
    valid = lowering.op("ne", torch.bool, target, lowering.const(ignored, target.dtype))
    safe = lowering.op("where", target.dtype, valid, target, lowering.const(0, target.dtype), hint="target")
    index = [safe if d == axis else lowering.iota(target.shape, d - (d > axis)) for d in range(len(x.shape))]
    picked = lowering.cast(gather(lowering, x.term.view.value, index), wide)
    loss = c("sub", log_sum, picked) if log_sum is not None else c("neg", picked)
    if weight is not None:
        scale = lowering.cast(gather(lowering, lowering.realise(weight).term.view.value, [safe]), wide)
        loss = c("mul", loss, scale)
    if smoothing:
        if log_sum is None:
            raise Unsupported("label smoothing without a softmax")
        each = c.x if weight is None else c("sub", unsqueeze(log_sum, axis), c.x, hint="gap")
        if weight is not None:
            each = c("mul", each, lowering.cast(spread(lowering, weight, len(x.shape), axis), wide))
        mean = c("div", lowering.reduce("sum", each, [axis], wide), count(lowering, x, [axis]))
        uniform = c("sub", log_sum, mean) if weight is None else mean
        loss = c("add", c("mul", loss, 1.0 - smoothing), c("mul", uniform, smoothing))
    zero = lowering.const(0.0, wide)
    loss = lowering.op("where", wide, valid, loss, zero, hint="loss")
    if reduction == 0:
        return lowering.cast(loss, result)
    dims = list(range(len(loss.shape)))
    total = lowering.reduce("sum", loss, dims, wide, name="loss") if dims else loss
    if reduction == 1:
        each = lowering.op("where", wide, valid, scale if weight is not None else lowering.const(1.0, wide), zero)
        total = c("div", total, lowering.reduce("sum", each, dims, wide, name="weight") if dims else each)
    return lowering.cast(total, result)


def soft_cross_entropy(
    lowering: Lowering, c: Calculator, target: Lazy, log_sum: Lazy, axis: int, reduction: int
) -> Lazy:
    """Targets are probabilities."""
    gap = c("sub", unsqueeze(log_sum, axis), c.x)
    loss = lowering.reduce("sum", c("mul", lowering.cast(target, c.dtype), gap), [axis], c.dtype)
    if reduction == 0:
        return lowering.cast(loss, out_dtype(lowering))
    dims = list(range(len(loss.shape)))
    total = lowering.reduce("sum", loss, dims, c.dtype) if dims else loss
    if reduction == 1:
        total = c("div", total, count(lowering, loss, dims))
    return lowering.cast(total, out_dtype(lowering))


# pooling: a window is a view, so pooling is a reduction over taps --------------------------------------------------


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
    return [out, place_of_tap(lowering, tap, starts, kernels, image, dilation)]


def times(lowering: Lowering, index: Lazy, factor: Size) -> Lazy:
    return index if factor == 1 else lowering.op("mul", torch.int64, index, size_const(lowering, factor))


def place_of_tap(
    lowering: Lowering, tap: Lazy, starts: list[Lazy], kernels: list[Size], image: Any, dilation: list[Any]
) -> Lazy:
    """The flat place in the image of a window's tap."""
    tap, place, integer = lowering.share(tap), None, torch.int64
    for i, first in enumerate(starts):
        inner = lowering.sizes.product(kernels[i + 1 :])
        at = tap if inner == 1 else lowering.op("floordiv", integer, tap, size_const(lowering, inner))
        if i:
            at = lowering.op("floormod", integer, at, size_const(lowering, kernels[i]))
        at = lowering.op("add", integer, first, times(lowering, at, lowering.size(dilation[i])))
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
            places = place_of_tap(lowering, tap, starts, parts, image, [1] * rank)
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
    picked = gather(lowering, x.term.view.value, index)
    dims = list(range(lead + rank, lead + 2 * rank))
    if is_max:
        low = lowering.const(-math.inf, x.dtype)
        windowed = lowering.op("where", x.dtype, inside, picked, low)
        out = lowering.reduce("max", windowed, dims, x.dtype)
        tap = lowering.reduce("argmax", windowed, dims, integer, name="tap")
        return out, place_of_tap(lowering, tap, starts, taps, x.shape[lead:], [1] * rank)
    wide = accumulated(x.dtype)
    share = lowering.op("div", wide, lowering.cast(picked, wide), lowering.cast(extent, wide))
    share = lowering.op("where", wide, inside, share, lowering.const(0.0, wide))
    return lowering.cast(lowering.reduce("sum", share, dims, wide), out_dtype(lowering)), None


__all__ = ["Value", "accumulated", "count", "dims_of"]
