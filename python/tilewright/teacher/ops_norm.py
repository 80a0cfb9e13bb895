"""Rules of normalisations."""

from __future__ import annotations

from typing import Any

import torch

from tilewright.teacher.builder import unsqueeze
from tilewright.teacher.ir import Lazy
from tilewright.teacher.lower import Lowering
from tilewright.teacher.ops_pointwise import Calculator, out_dtype
from tilewright.teacher.ops_reduce import accumulated, count, drop, moments, spread
from tilewright.teacher.ops_view import reshape_to
from tilewright.teacher.rules import lowers


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
