"""The backward pass under cotangents in other layouts than the contiguous one, where a problem asks for gradients.

Autograd hands out such gradients for everyday code: that of `y.sum()` is one number expanded to the shape of `y`, that
of `y.t() @ w` is transposed, that of `torch.cat((y, z), -1)` lies in longer rows. A plan begins with copies that put a
trial's cotangents into such a layout; what follows must be right.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch

from .trace_source import failure_kind

if TYPE_CHECKING:
    from .trace import Built, Session
    from .trace_module import Inputs

_OWN_REGIME = "seed"
_EXPANDED_REGIME = "expanded-cotangents"
"""Of the trial whose cotangents are equal along the dimensions that the signature names (`oracle_regime.EXPANDED`)."""

_EXPANDED = "with a cotangent that is expanded (strides of 0), as sum().backward() gives it"
_TURNED = "with a cotangent that is not contiguous, as the backward pass of a transpose or a stack gives it"
_APART = "with a cotangent whose rows lie apart, as the backward pass of a concatenation gives it"
_HELP = "Call .contiguous() on each gradient that backward is given, or pass its strides to the kernel."

Cotangent = dict[str, Any]
"""The contract's `TensorRef` of a cotangent."""
Axes = Sequence[int]
"""The dimensions along which a cotangent is expanded."""
Layout = Callable[[list[int], Axes, Callable[[list[int]], torch.Tensor]], torch.Tensor | None]
"""A tensor of this shape, from contiguous ones that a function makes; None where there is no such layout."""


def of_cotangents(session: Session, built: Built, base: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The plans of calls with cotangents in other layouts, each with words that say in which."""
    spec = session.signature.get("gradients")
    if spec is None:
        return
    cotangents = session.signature["args"][-1]["items"]
    none, expanded = [()] * len(cotangents), spec.get("expanded") or [()] * len(cotangents)
    for what, regime, layout, axes in (
        (_TURNED, _OWN_REGIME, _turned, none),
        (_APART, _OWN_REGIME, _apart, none),
        (_EXPANDED, _EXPANDED_REGIME, _expanded, expanded),
    ):
        call = _arguments(session, cotangents, layout, axes)
        if call is None:
            continue
        try:
            with session.coverage.watching():
                plan = session.call(built, call).plan()
        except Exception as exception:
            base["findings"].append(_raises(session, what, exception))
            continue
        known = [finding["message"] for finding in base["findings"]]
        for finding in plan["findings"]:
            if finding["message"] not in known:
                finding["message"] = f"{finding['message'][:300]}, {what}"
        plan["regime"] = regime
        yield f"{what}: {_HELP[0].lower()}{_HELP[1:-1]}", plan


def _raises(session: Session, what: str, exception: Exception) -> dict[str, Any]:
    kind = failure_kind(exception)
    error = session.source.error(kind, exception)["error"]
    message = f"{what}, a call raises {error['type']}: {error['message']}"
    tier, line = "proof" if kind == "exception" else kind, error["line"] or 0
    return {"rule": "cotangent-layout", "tier": tier, "message": message[:500], "line": line, "help": _HELP}


def _arguments(
    session: Session, cotangents: list[Cotangent], layout: Layout, axes: Sequence[Axes]
) -> tuple[list[Any], Inputs] | None:
    """Arguments of a call with cotangents in a layout; None where none of them has it."""
    args, inputs = session.arguments()
    with session.mode:
        for at, (ref, along) in enumerate(zip(cotangents, axes, strict=True)):
            options: dict[str, Any] = {"dtype": getattr(torch, ref["dtype"]), "device": session.card.device}
            made = layout(ref["shape"], along, functools.partial(torch.empty, **options))
            if made is not None:
                args[-1][at] = made.detach()
                inputs.relaid(ref, args[-1][at], along)
    return (args, inputs) if inputs.sources else None


def _turned(shape: list[int], _: Axes, empty: Callable[[list[int]], torch.Tensor]) -> torch.Tensor | None:
    """Its dimensions in reverse order in memory; where that is contiguous too, every second element of a larger one."""
    if math.prod(shape) <= 1:
        return None
    turned = empty(shape[::-1]).permute(*range(len(shape) - 1, -1, -1))
    return empty([*shape, 2])[..., 0] if turned.is_contiguous() else turned


def _apart(shape: list[int], _: Axes, empty: Callable[[list[int]], torch.Tensor]) -> torch.Tensor | None:
    """The first half of longer rows."""
    if math.prod(shape) == 0 or math.prod(shape[:-1]) <= 1:
        return None
    return empty([*shape[:-1], 2 * shape[-1]])[..., : shape[-1]]


def _expanded(shape: list[int], axes: Axes, empty: Callable[[list[int]], torch.Tensor]) -> torch.Tensor | None:
    """One place for all elements along some dimensions."""
    small = [1 if axis in axes else extent for axis, extent in enumerate(shape)]
    return empty(small).expand(shape) if axes else None
