"""Functions of torch that cannot be traced on tensors without data, in terms of others that can."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode


def bincount(x: torch.Tensor, weights: torch.Tensor | None = None, minlength: int = 0) -> Any:
    """Only bytes have a result whose length does not depend on them."""
    if x.dtype != torch.uint8 or minlength < 256 or weights is not None:
        return NotImplemented
    counts = torch.zeros(minlength, dtype=torch.int64, device=x.device)
    return counts.index_add(0, x.long(), torch.ones_like(x, dtype=torch.int64))


def quantile(
    x: torch.Tensor, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Any:
    """Between two elements of the sorted line; a line with a NaN has NaN."""
    if not isinstance(q, float | int) or interpolation != "linear":
        return NotImplemented
    if dim is None:
        return NotImplemented if keepdim else quantile(x.flatten(), q, 0)
    line = x.sort(dim).values
    last = x.shape[dim] - 1
    place = q * last
    low = math.floor(place)
    below, above = (line.narrow(dim, at, 1) for at in (low, math.ceil(place)))
    worst = line.narrow(dim, last, 1)
    found = torch.where(worst.isnan(), worst, below + (above - below) * (place - low))
    return found if keepdim else found.squeeze(dim)


def gaussian_nll_loss(
    input: torch.Tensor, target: torch.Tensor, var: Any, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Any:
    """Without the look at whether some variance is negative."""
    if not isinstance(var, torch.Tensor):
        return NotImplemented
    if var.shape != input.shape and input.shape[:-1] == var.shape:
        var = var.unsqueeze(-1)
    var = var.clamp(min=eps)
    loss = 0.5 * (torch.log(var) + (input - target) ** 2 / var)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return loss.mean() if reduction == "mean" else loss.sum() if reduction == "sum" else loss


REWRITES: dict[Any, Any] = {
    torch.bincount: bincount,
    torch.Tensor.bincount: bincount,
    torch.quantile: quantile,
    torch.Tensor.quantile: quantile,
    F.gaussian_nll_loss: gaussian_nll_loss,
}


class Rewriting(TorchFunctionMode):
    """Puts the rewritten functions in the place of torch's."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in REWRITES:
            result = REWRITES[func](*args, **kwargs)
            if result is not NotImplemented:
                return result
        return func(*args, **kwargs)
