"""Rules of losses."""

from __future__ import annotations

from typing import Any

import torch

from tilewright.teacher.builder import gather, unsqueeze
from tilewright.teacher.ir import Lazy
from tilewright.teacher.lower import Lowering
from tilewright.teacher.ops_pointwise import Calculator, out_dtype
from tilewright.teacher.ops_reduce import accumulated, count, logsumexp_of, spread
from tilewright.teacher.rules import lowers
from tilewright.teacher.sizes import Unsupported


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
    picked = lowering.cast(gather(lowering, x, index), wide)
    loss = c("sub", log_sum, picked) if log_sum is not None else c("neg", picked)
    if weight is not None:
        scale = lowering.cast(gather(lowering, lowering.realise(weight), [safe]), wide)
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
