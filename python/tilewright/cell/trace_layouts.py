"""The backward pass under cotangents in other layouts than the contiguous one, where a problem asks for gradients.

Autograd hands out such gradients for everyday code: that of `y.sum()` is one number expanded to the shape of `y`, that
of `y.t() @ w` is transposed. A plan begins with copies that put a trial's cotangents into such a layout; what follows
must be right.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch

from .trace_record import TraceEnd
from .trace_source import failure_kind

if TYPE_CHECKING:
    from .trace import Built, Session
    from .trace_module import Inputs

_OWN_REGIME = "seed"
_EXPANDED_REGIME = "expanded-cotangents"
"""Of the trial whose cotangents are equal along the dimensions that the signature names (`oracle_regime.EXPANDED`)."""

_EXPANDED = "with a cotangent that is expanded (strides of 0), as sum().backward() gives it"
_STRIDED = "with a cotangent that is not contiguous, as the backward pass of a transpose or a stack gives it"
_HELP = "Call .contiguous() on each gradient that backward is given, or pass its strides to the kernel."

Cotangent = dict[str, Any]
"""The contract's `TensorRef` of a cotangent."""
Axes = Sequence[int] | None
"""The dimensions along which a cotangent is expanded; None where it is laid out in another way."""


def of_cotangents(session: Session, built: Built, base: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The plans of calls with cotangents in other layouts, each with words that say in which."""
    spec = session.signature.get("gradients")
    if spec is None:
        return
    cotangents = session.signature["args"][-1]["items"]
    strided, expanded = [None] * len(cotangents), spec.get("expanded") or [()] * len(cotangents)
    for what, regime, axes in ((_STRIDED, _OWN_REGIME, strided), (_EXPANDED, _EXPANDED_REGIME, expanded)):
        if not any(map(_changes, cotangents, axes)):
            continue
        try:
            with session.coverage.watching():
                plan = session.call(built, _arguments(session, cotangents, axes)).plan()
        except TraceEnd:
            continue
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


def _changes(ref: Cotangent, axes: Axes) -> bool:
    return math.prod(ref["shape"]) > 1 if axes is None else len(axes) > 0


def _arguments(session: Session, cotangents: list[Cotangent], axes: Sequence[Axes]) -> tuple[list[Any], Inputs]:
    """Arguments of a call, each cotangent laid out along its own of `axes`."""
    args, inputs = session.arguments()
    with session.mode:
        for at, (ref, along) in enumerate(zip(cotangents, axes, strict=True)):
            if _changes(ref, along):
                args[-1][at] = _laid_out(ref, along, session.card.device)
                inputs.relaid(ref, args[-1][at], along or ())
    return args, inputs


def _laid_out(ref: Cotangent, axes: Axes, device: torch.device) -> torch.Tensor:
    """A tensor like a contiguous one: expanded along `axes`, or else with its dimensions in reverse order in memory;
    where that is contiguous too, every second element of a larger one."""
    shape, dtype = ref["shape"], getattr(torch, ref["dtype"])
    if axes is not None:
        small = [1 if axis in axes else extent for axis, extent in enumerate(shape)]
        return torch.empty(small, dtype=dtype, device=device).expand(shape).detach()
    turned = torch.empty(shape[::-1], dtype=dtype, device=device).permute(*range(len(shape) - 1, -1, -1)).detach()
    if not turned.is_contiguous():
        return turned
    return torch.empty([*shape, 2], dtype=dtype, device=device)[..., 0].detach()
