"""Value regimes: what happens to the floating inputs of a call besides the problem's own distribution."""

from __future__ import annotations

from typing import Any

import torch

from tilewright.cell.oracle_reference import is_finite

REGIMES = ("scaled-1e-3", "scaled-1e3", "negative", "constant-rows", "large")


def apply(regime: str, docs: list[Any], flats: list[torch.Tensor]) -> bool:
    """Change the floating storages in place; False where nothing changed or a value left the dtype's range."""
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
            _map(floats, lambda x: x * 100)
        case "negative":
            _map(floats, lambda x: -x.abs())
        case "constant-rows":
            for doc in docs:
                _constant_rows(doc, flats)
        case _:
            raise ValueError(f"unknown value regime {regime!r}")
    finite = all(is_finite(flat) for flat in floats)
    return finite and any(not torch.equal(a.float(), b.float()) for a, b in zip(before, floats, strict=True))


def _map(floats: list[torch.Tensor], change: Any) -> None:
    for flat in floats:
        # In float32 or wider: float8 has no arithmetic of its own.
        wide = flat.to(torch.promote_types(flat.dtype, torch.float32)) if flat.dtype.itemsize > 1 else flat.float()
        flat.copy_(change(wide).to(flat.dtype))


def _constant_rows(doc: dict[str, Any], flats: list[torch.Tensor]) -> None:
    """Every row (last dimension) of a tensor becomes its first element."""
    if doc["kind"] == "tensor":
        flat = flats[doc["buffer"]]
        shape, strides = doc["shape"], doc["strides"]
        if not flat.is_floating_point() or not shape or 0 in shape or 0 in strides:
            return
        view = flat.as_strided(shape, strides, doc["offset"] // flat.element_size())
        view.copy_(view[..., :1].clone().expand(shape))
        return
    for item in doc.get("items", []):
        _constant_rows(item[1] if doc["kind"] == "dict" else item, flats)
