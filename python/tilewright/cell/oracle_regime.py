"""Value regimes: what happens to the floating inputs of a call besides the problem's own distribution."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from tilewright.cell.oracle_reference import is_finite

REGIMES = ("scaled-1e-3", "scaled-1e3", "negative", "constant-rows", "large", "mixed-rows")

EXPANDED = "expanded-cotangents"
"""A regime of problems that ask for gradients: along some dimensions, all elements of a cotangent are equal."""

LARGE = (100.0, 30.0, 10.0, 3.0)
"""Factors of the regime `large`; the first that the reference stands is taken."""

KINDS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "low": lambda x: x - 300.0,
    "far": lambda x: x - 3e4,
    "zero": torch.zeros_like,
    "tiny": lambda x: x * 1e-13,
    "high": lambda x: x + 3e4,
}
"""What becomes of the rows of the regime `mixed-rows`, in turn."""

Axes = Sequence[Sequence[int]]
"""Of each cotangent, the dimensions along which it is constant."""

PIECES = 8
"""Rows that a tensor of one dimension is taken to have."""


def apply(
    regime: str,
    docs: list[Any],
    flats: list[torch.Tensor],
    factor: float = LARGE[0],
    kinds: Sequence[str] = (),
    axes: Axes = (),
) -> bool:
    """Change the floating storages in place; False where nothing changed or a value left the dtype's range.

    `factor` is that of the regime `large`, `kinds` those of `mixed-rows`, `axes` those of the expanded cotangents.
    """
    floats = [flat for flat in flats if flat.is_floating_point() and flat.numel() > 0]
    if not floats:
        return False
    before = [flat.clone() for flat in floats]
    match regime:
        case "scaled-1e-3":
            _map(floats, lambda x: x * 1e-3)
        case "scaled-1e3":
            _map(floats, lambda x: x * 1e3)
        case "large":
            _map(floats, lambda x: x * factor)
        case "negative":
            _map(floats, lambda x: -x.abs())
        case "constant-rows":
            for view in _rows(docs, flats):
                view.copy_(_short(view[..., :1]).expand(view.shape))
        case "mixed-rows":
            for view in _rows(docs, flats) if kinds else ():
                _mix(view, kinds)
        case "expanded-cotangents":
            for doc, along in zip(docs[-1]["items"], axes, strict=True):
                _expand(_view(doc, flats), along)
        case _:
            raise ValueError(f"unknown value regime {regime!r}")
    finite = all(is_finite(flat) for flat in floats)
    return finite and any(not torch.equal(a.float(), b.float()) for a, b in zip(before, floats, strict=True))


def _short(values: torch.Tensor) -> torch.Tensor:
    """The values with few bits: a sum over a row of equal ones is then exact in whatever order.

    Of longer ones each order has another rounding error, which a normalisation divides by the root of its epsilon.
    """
    return values.float().bfloat16().to(values.dtype)


def _map(floats: list[torch.Tensor], change: Any) -> None:
    for flat in floats:
        # In float32 or wider: float8 has no arithmetic of its own.
        wide = flat.to(torch.promote_types(flat.dtype, torch.float32)) if flat.dtype.itemsize > 1 else flat.float()
        flat.copy_(change(wide).to(flat.dtype))


def _rows(docs: list[Any], flats: list[torch.Tensor]) -> Iterator[torch.Tensor]:
    """The floating tensors that have rows (the last dimension) and may be written."""
    for doc in docs:
        if doc["kind"] == "tensor":
            shape, strides = doc["shape"], doc["strides"]
            if flats[doc["buffer"]].is_floating_point() and shape and 0 not in shape and 0 not in strides:
                yield _view(doc, flats)
            continue
        items = doc.get("items", [])
        yield from _rows([item[1] for item in items] if doc["kind"] == "dict" else items, flats)


def _view(doc: Any, flats: list[torch.Tensor]) -> torch.Tensor:
    flat = flats[doc["buffer"]]
    return flat.as_strided(doc["shape"], doc["strides"], doc["offset"] // flat.element_size())


def expansions(shapes: list[list[int]]) -> list[list[list[int]]]:
    """Along which dimensions cotangents of these shapes may be constant, the likeliest first: all, as that of a sum is,
    then each."""
    long = [[axis for axis, extent in enumerate(shape) if extent > 1] for shape in shapes]
    most = max(map(len, long), default=0)
    single = [[[axes[at % len(axes)]] if axes else [] for axes in long] for at in range(most if most > 1 else 0)]
    return [long, *single] if most > 0 else []


def _expand(view: torch.Tensor, axes: Sequence[int]) -> None:
    """Make a cotangent constant along some dimensions; a single number is not next to nothing."""
    if not axes:
        return
    first = view
    for axis in axes:
        first = first.narrow(axis, 0, 1)
    if first.numel() == 1:
        first = (first.float().abs().clamp(max=1.0) + 0.5).copysign(first.float()).to(view.dtype)
    view.copy_(first.clone().expand(view.shape))


def _mix(view: torch.Tensor, kinds: Sequence[str]) -> None:
    """Give the rows of a tensor the kinds in turn; the pieces of one that has a single dimension."""
    if view.dim() == 1:
        rows = list(view.tensor_split(PIECES))
        groups = [rows[number :: len(kinds)] for number in range(len(kinds))]
    else:
        numbers = torch.arange(view[..., 0].numel()).reshape(view.shape[:-1]) % len(kinds)
        groups = [numbers == number for number in range(len(kinds))]
    for kind, group in zip(kinds, groups, strict=True):
        if isinstance(group, list):
            for row in group:
                row.copy_(_changed(row, kind))
        else:
            view[group] = _changed(view[group], kind)


def _changed(rows: torch.Tensor, kind: str) -> torch.Tensor:
    wide = rows.to(torch.promote_types(rows.dtype, torch.float32)) if rows.dtype.itemsize > 1 else rows.float()
    return KINDS[kind](wide).to(rows.dtype)
