"""Compares two results of a case by its class."""

from __future__ import annotations

import numpy as np

from .cases import Case
from .types import is_float, to_double, ulp


def compare(case: Case, data: list[np.ndarray], gpu: np.ndarray, emulated: np.ndarray) -> dict:
    """How far the emulator is from the GPU, and whether that is within the case's bound."""
    with np.errstate(all="ignore"):
        wrong, figures = differences(case, data, gpu, emulated)
    row = {"status": "fail" if wrong.any() else "pass", "differ": int(wrong.sum()), **figures}
    if wrong.any():
        row["why"] = example(case, data, gpu, emulated, wrong)
    return row


def differences(case: Case, data: list[np.ndarray], a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, dict]:
    """Which elements are too far apart, and the largest distance."""
    same = a == b
    if not is_float(case.out):
        return ~same, {"exact": float(same.mean())}
    x, y = to_double(case.out, a), to_double(case.out, b)
    both_nan = np.isnan(x) & np.isnan(y)
    same |= both_nan
    if case.kind in ("exact", "undefined"):
        return ~same, {"exact": float(same.mean())}
    same |= x == y  # zeros of either sign
    finite = np.isfinite(x) & np.isfinite(y)
    distance = np.where(finite, np.abs(x - y), 0.0)
    if case.kind == "ulp":
        # One unit more: the emulator rounds its own result.
        factor = 2 if case.twice else 1
        units = distance / ulp(case.out, y)
        near = finite & ((units <= factor * case.bound + 1) | (distance <= factor * case.absolute))
        worst = units[finite & (distance > case.absolute)]
        figures = {"worst": float(worst.max()) if worst.size else 0.0}
        if case.absolute:
            figures["worst_absolute"] = float(distance.max())
    else:
        scale = case.scale(data)
        relative = np.where(scale > 0, distance / np.where(scale > 0, scale, 1.0), np.where(distance > 0, np.inf, 0.0))
        near = finite & ((relative <= case.bound) | (distance <= ulp(case.out, y)))
        figures = {"worst": float(relative.max())}
    return ~(same | near), {**figures, "exact": float(same.mean())}


def example(case: Case, data: list[np.ndarray], gpu: np.ndarray, emulated: np.ndarray, wrong: np.ndarray) -> str:
    """The first elements that differ, with their inputs where those belong to elements."""
    texts = []
    for at in np.flatnonzero(wrong)[:3]:
        values = ", ".join(_shown(dtype, array[at]) for dtype, array in zip(case.inputs, data, strict=True))
        inputs = "" if case.whole else f" of ({values})"
        texts.append(
            f"[{at}] {_shown(case.out, gpu[at])} on the GPU, {_shown(case.out, emulated[at])} emulated{inputs}"
        )
    return "; ".join(texts)


def _shown(dtype: str, bits: np.generic) -> str:
    if not is_float(dtype):
        return str(int(bits))
    value = to_double(dtype, np.array([bits]))[0]
    return f"{value:.9g} ({int(bits):#x})"
