"""The judge's figures of one output, computed where the output lies: on a GPU or a CPU, in chunks, in float64.

The same figures as `crates/judge/src/scan.rs` (see there, and `docs/design/precision.md`), by torch. Rust decides on
them. A `Reference` keeps what depends on the expected values alone, so that many candidates pay for it once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from tilewright.cell.oracle_reference import equal_bits
from tilewright.cell.oracle_values import NAMES, raw_bytes

SHORT = 256
"""Elements of the shortest group, unless the whole output has fewer."""
LONG = 1 << 16
"""Elements of the longest group."""
CHUNK = 1 << 22
"""Elements that are looked at together, more or less: intermediate results should take no memory to speak of."""
TINY = 1e-7
FLOOR = 1.0 / 1024.0

FORMATS: dict[torch.dtype, tuple[int, int, float, float]] = {
    torch.float8_e4m3fn: (3, -6, 448.0, 2.0**-9),
    torch.float8_e5m2: (2, -14, 57344.0, 2.0**-16),
    torch.float16: (10, -14, 65504.0, 2.0**-24),
    torch.bfloat16: (7, -126, torch.finfo(torch.bfloat16).max, 2.0**-133),
    torch.float32: (23, -126, torch.finfo(torch.float32).max, 2.0**-149),
    torch.float64: (52, -1022, torch.finfo(torch.float64).max, 5e-324),
}
"""Bits behind the leading one, exponent of the smallest normal number, largest and smallest positive number."""


@dataclass(frozen=True)
class Groups:
    """An output cut into groups of neighbouring elements: rows of the last axes, long ones cut evenly."""

    total: int
    row: int
    parts: int

    @staticmethod
    def of(shape: list[int]) -> Groups:
        """The groups of a tensor of this shape."""
        row = 1
        for extent in reversed(shape):
            if row >= SHORT:
                break
            row *= extent
        row = max(row, 1)
        return Groups(math.prod(shape), row, -(-row // LONG))

    @property
    def count(self) -> int:
        return self.total // self.row * self.parts

    def chunks(self) -> Iterator[Span]:
        """Runs of whole groups of about `CHUNK` elements."""
        step = max(CHUNK // max(self.row // self.parts, 1), 1)
        for first in range(0, self.count, step):
            yield Span(self, first, min(first + step, self.count))


@dataclass(frozen=True)
class Span:
    """Neighbouring groups."""

    groups: Groups
    first: int
    last: int

    @property
    def even(self) -> bool:
        return self.groups.row % self.groups.parts == 0

    def start(self, group: int) -> int:
        """The first element of a group."""
        row, part = divmod(group, self.groups.parts)
        return row * self.groups.row + part * self.groups.row // self.groups.parts

    def places(self, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
        """Where groups are not all of one length: the index of each element, a row a group, and which of them exist."""
        number = torch.arange(self.first, self.last + 1, device=device)
        rows, parts = number // self.groups.parts, number % self.groups.parts
        starts = rows * self.groups.row + parts * self.groups.row // self.groups.parts
        longest = int((starts[1:] - starts[:-1]).max())
        index = starts[:-1, None] + torch.arange(longest, device=device)
        valid = index < starts[1:, None]
        return index.clamp_(max=self.groups.total - 1), valid

    def take(self, flat: torch.Tensor, places: tuple[torch.Tensor, torch.Tensor] | None) -> torch.Tensor:
        """The elements of a flat tensor as float64, a row a group."""
        if places is not None:
            return (flat.view(torch.uint8) if flat.element_size() == 1 else flat)[places[0]].view(flat.dtype).double()
        length = self.groups.row // self.groups.parts
        return flat[self.first * length : self.last * length].double().view(-1, length)


def round_to(dtype: torch.dtype, value: torch.Tensor) -> torch.Tensor:
    """Float64 values rounded once to a narrower dtype, ties to even. Torch's own conversion to 16 bits rounds twice."""
    if dtype == torch.float64:
        return value
    if dtype == torch.float32:
        return value.float().double()
    mantissa, lowest, largest, _ = FORMATS[dtype]
    exponent = (torch.frexp(value)[1] - 1).clamp(lowest, 1023)
    # A power of two by its bits: torch's ldexp computes in float32.
    step = ((exponent.long() - mantissa + 1023) << 52).view(torch.float64)
    rounded = torch.where(value.isfinite(), torch.round(value / step) * step, value)
    if dtype == torch.float8_e4m3fn:
        # It has no infinities.
        return torch.where(rounded.abs() <= largest, rounded, math.nan)
    over = torch.where(value.isnan(), value, torch.copysign(torch.full_like(value, math.inf), value))
    return torch.where(rounded.abs() <= largest, rounded, over)


def alike(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Both finite, both NaN, or the same infinity."""
    return (a.isfinite() & b.isfinite()) | (a.isnan() & b.isnan()) | (a == b)


class Reference:
    """The expected values of one tensor under one choice of golden: `native`, `float64` or `rounded`."""

    def __init__(
        self, native: torch.Tensor, float64: torch.Tensor | None, shape: list[int], golden: str, grouped: bool
    ) -> None:
        """Of flat tensors of expected values; `grouped` where the rule needs each group's scale."""
        self.golden = golden if float64 is not None else "native"
        self.native, self.float64 = native, float64
        self.dtype = native.dtype
        self.groups = Groups.of(shape)
        self.grouped = grouped
        self.unit = 1.0
        self.plain = True
        """Whether every value is finite, also once rounded: then only the candidate's may not be."""
        self.rms = self.error = 0.0
        self.scales: list[tuple[torch.Tensor, torch.Tensor]] = []
        """For each chunk, each group's rms of the golden, and of what the native result is off by."""
        self.known: dict[Any, Any] = {}
        """What `fused` keeps of it."""
        if self.dtype == torch.float64:
            self._set_unit()
        self._overview()

    def rounded(self) -> torch.Tensor:
        """The golden, where that is rounded to the native dtype."""
        assert self.float64 is not None, "without float64 results the golden is native"
        return torch.cat([round_to(self.dtype, part).to(self.dtype) for part in self.float64.split(CHUNK)])

    def scales_under(self, limits: Limits) -> torch.Tensor:
        """Each group's scale."""
        return torch.cat([limits.scale(*pair) for pair in self.scales])

    def window(self, span: Span, places: Any) -> tuple[torch.Tensor, torch.Tensor]:
        """Golden and native values of some groups."""
        native = span.take(self.native, places)
        if self.golden == "native" or self.float64 is None:
            golden = native
        else:
            golden = span.take(self.float64, places)
            golden = round_to(self.dtype, golden) if self.golden == "rounded" else golden
        if self.unit != 1.0:
            golden, native = golden / self.unit, native / self.unit
        return golden, native

    def places(self, span: Span) -> tuple[torch.Tensor, torch.Tensor] | None:
        """Indices of the elements where they are needed."""
        return None if span.even else span.places(self.native.device)

    def _set_unit(self) -> None:
        """A power of two by which values are divided, so that squares of huge and minute ones stay in range."""
        largest = 0.0
        for span in self.groups.chunks():
            golden, _ = self.window(span, self.places(span))
            largest = max(largest, golden.abs().where(golden.isfinite(), 0.0).max().item())
        if largest > 0.0 and not 1e-120 <= largest < 1e120:
            self.unit = 2.0 ** max(int(math.log2(largest)), -1000)

    def _overview(self) -> None:
        count = golden_squares = error_squares = 0.0
        largest = FORMATS[self.dtype][2]
        for span in self.groups.chunks():
            places = self.places(span)
            golden, native = self.window(span, places)
            both = golden.isfinite() & native.isfinite()
            within = both & ((golden * self.unit).abs() <= largest)
            self.plain = self.plain and bool(within.all())
            if not self.grouped:
                continue
            both = both if places is None else both & places[1]
            squares = golden.square().where(both, 0.0).sum(1)
            errors = (native - golden).square().where(both, 0.0).sum(1)
            number = both.sum(1)
            sums = torch.stack([number.sum().double(), squares.sum(), errors.sum()]).tolist()
            count, golden_squares, error_squares = count + sums[0], golden_squares + sums[1], error_squares + sums[2]
            number = number.clamp_(min=1)
            self.scales.append(((squares / number).sqrt(), (errors / number).sqrt()))
        self.rms, self.error = math.sqrt(golden_squares / max(count, 1)), math.sqrt(error_squares / max(count, 1))


@dataclass
class Limits:
    """What an element may be off by: one of `rule`'s, in the reference's unit."""

    rule: str
    tolerance: dict[str, float]
    reference: Reference

    def __post_init__(self) -> None:
        """Scale what has a unit."""
        unit = self.reference.unit
        scaled = {name: self.tolerance[name] / unit for name in ("atol", "small_threshold", "small_error")}
        self.t = {**self.tolerance, **scaled}
        self.tiny = TINY / unit
        self.quantum = FORMATS[self.reference.dtype][3] / unit

    def scale(self, golden: torch.Tensor, error: torch.Tensor) -> torch.Tensor:
        """Each group's scale."""
        own = golden.clamp(min=FLOOR * self.reference.rms)
        error = error.clamp(min=FLOOR * self.reference.error)
        return torch.maximum(own, error * (self.t["reference_factor"] / self.t["rms_tol"]))

    def denominator(self, golden: torch.Tensor) -> torch.Tensor:
        """What relative errors are relative to."""
        if self.rule == "mere_mare_truncated":
            return golden.clamp(min=self.t["rtol"] * self.tiny / TINY)
        return golden + self.tiny

    def element(self, golden: torch.Tensor, scale: torch.Tensor | None) -> torch.Tensor:
        """The largest difference allowed at goldens of these magnitudes."""
        if self.rule == "scaled_rms" and scale is not None:
            base = self.t["atol_scaled"] * scale + self.quantum
            return torch.add(base[:, None], golden, alpha=self.t["rtol"])
        if self.rule in ("mere_mare", "mere_mare_truncated"):
            return 10.0 * self.t["rtol"] * self.denominator(golden)
        return self.t["rtol"] * golden + self.t["atol"]

    def matched(self, difference: torch.Tensor, golden: torch.Tensor) -> torch.Tensor:
        """The middle condition of the rule `three_way`."""
        small = difference <= self.t["small_error"]
        near = difference / self.denominator(golden) <= self.t["mean_rel"]
        return small.where(golden < self.t["small_threshold"], near)


class Scan:
    """Figures of one candidate's tensor against a reference."""

    def __init__(self, limits: Limits, nan_fails: bool) -> None:
        self.limits, self.nan_fails = limits, nan_fails
        self.counts = dict.fromkeys(
            ("elements", "finite", "pattern", "extra_nan", "extra_inf", "both_nan", "mismatched", "matched"), 0
        )
        self.sums = dict.fromkeys(("relative", "squares", "golden"), 0.0)
        self.most = dict.fromkeys(("max_abs", "max_rel"), 0.0)
        self.worst: tuple[float, int] | None = None
        self.group: tuple[float, int] | None = None

    def run(self, got: torch.Tensor) -> Scan:
        """Look at all of `got`, which is flat."""
        reference = self.limits.reference
        for number, span in enumerate(reference.groups.chunks()):
            places = reference.places(span)
            golden, native = reference.window(span, places)
            values = span.take(got, places)
            if reference.unit != 1.0:
                values = values / reference.unit
            target = golden
            counted = None if places is None else places[1]
            if not (reference.plain and bool(values.sum().isfinite())):
                target, counted = self._pattern(span, golden, native, values, counted)
            self._add(number, span, target, values, counted, places)
        return self

    def _pattern(
        self, span: Span, golden: torch.Tensor, native: torch.Tensor, got: torch.Tensor, valid: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """What each value is held against, and which ones are compared as numbers. Others must be where the reference
        has them; where it overflows in its own dtype but not in float64, either is right."""
        reference = self.limits.reference
        rounded = golden
        if reference.golden != "native":
            rounded = round_to(reference.dtype, golden * reference.unit)
        by_golden = alike(rounded, got)
        fits = by_golden | alike(native, got)
        if self.nan_fails:
            fits &= ~got.isnan()
        refused = ~fits if valid is None else ~fits & valid
        nan = refused & got.isnan()
        both = nan & golden.isnan()
        infinite = refused & ~got.isnan() & golden.isfinite()
        found = torch.stack([mask.sum() for mask in (refused, nan & ~both, infinite, both)]).tolist()
        for name, number in zip(("pattern", "extra_nan", "extra_inf", "both_nan"), found, strict=True):
            self.counts[name] += number
        self.counts["mismatched"] += found[0]
        if found[0]:
            self._keep_worst(math.inf, span, int(refused.flatten().to(torch.uint8).argmax()), got.shape[1])
        counted = fits & got.isfinite()
        return golden.where(by_golden, native), counted if valid is None else counted & valid

    def _add(
        self,
        number: int,
        span: Span,
        target: torch.Tensor,
        got: torch.Tensor,
        counted: torch.Tensor | None,
        places: Any,
    ) -> None:
        limits = self.limits
        difference, golden = (got - target).abs_(), target.abs()
        if counted is not None:
            difference, golden = difference.where(counted, 0.0), golden.where(counted, 0.0)
        scale = limits.scale(*limits.reference.scales[number]) if limits.rule == "scaled_rms" else None
        limit = limits.element(golden, scale)
        # 0/0 is no error; the limit may be 0.
        score = (difference / limit).where(difference > 0.0, 0.0)
        score = score if counted is None else score.where(counted, -1.0)
        relative = difference / limits.denominator(golden)
        outside = difference >= limit if limits.rule.startswith("mere") else difference > limit
        if counted is not None:
            outside &= counted
        squares = difference.square().sum(1)
        best = score.flatten().argmax()
        count = counted.sum(1) if counted is not None else torch.full_like(squares, got.shape[1])
        figures = [
            count.sum().double(),
            outside.sum().double(),
            relative.sum(),
            squares.sum(),
            golden.square().sum(),
            difference.max(),
            (difference / golden.clamp(min=limits.tiny)).max(),
            score.flatten()[best],
            best.double(),
        ]
        if scale is not None:
            allowed = limits.t["rms_tol"] * scale + limits.quantum
            rms = (squares / count.clamp(min=1)).sqrt()
            scores = (rms / allowed).where(rms > 0.0, 0.0).where(count > 0, -1.0)
            first = scores.argmax()
            figures += [scores[first], first.double()]
        if limits.rule == "three_way":
            matched = limits.matched(difference, golden)
            figures.append((matched if counted is None else matched & counted).sum().double())
        # The one place where the device is waited for.
        found = torch.stack(figures).tolist()
        self._join(span, found, got.shape, places)

    def _join(self, span: Span, found: list[float], shape: torch.Size, places: Any) -> None:
        self.counts["elements"] += shape.numel() if places is None else int(places[1].sum())
        self.counts["finite"] += int(found[0])
        self.counts["mismatched"] += int(found[1])
        for name, value in zip(("relative", "squares", "golden"), found[2:5], strict=True):
            self.sums[name] += value
        for name, value in zip(("max_abs", "max_rel"), found[5:7], strict=True):
            self.most[name] = max(self.most[name], value)
        if found[7] >= 0.0:
            self._keep_worst(found[7], span, int(found[8]), shape[1])
        if self.limits.rule == "scaled_rms" and found[9] >= 0.0 and (self.group is None or found[9] > self.group[0]):
            self.group = (found[9], span.first + int(found[10]))
        if self.limits.rule == "three_way":
            self.counts["matched"] += int(found[-1])

    def _keep_worst(self, score: float, span: Span, place: int, width: int) -> None:
        if self.worst is None or score > self.worst[0]:
            group, at = divmod(place, width)
            self.worst = (score, span.start(span.first + group) + at)


_DTYPE_NAMES = {dtype: name for name, dtype in NAMES.items()}


def dtype_name(dtype: torch.dtype) -> str:
    """As contracts call it."""
    return _DTYPE_NAMES[dtype]


def tolerance_of(profile: dict[str, Any], dtype: torch.dtype) -> dict[str, float]:
    """What holds for a dtype."""
    return profile["tolerance"].get(dtype_name(dtype), profile["default"])


def scan(reference: Reference, got: torch.Tensor, profile: dict[str, Any]) -> dict[str, Any]:
    """Figures of `got`, flat and of the reference's dtype, under a profile (contract `Profile`). Floats as text, which
    can hold infinities."""
    found = Scan(
        Limits(profile["rule"], tolerance_of(profile, reference.dtype), reference), profile["non_finite"] == "nan_fails"
    ).run(got)

    def place(best: tuple[float, int] | None) -> list[Any] | None:
        return None if best is None else [repr(best[0]), best[1]]

    floats = {name: repr(value) for name, value in {**found.sums, **found.most}.items()}
    places = {"worst": place(found.worst), "group": place(found.group)}
    element = _element(found.worst and found.worst[1], reference.native, reference.float64, got)
    return {**found.counts, **floats, **places, "unit": repr(reference.unit), "element": element}


def equal_figures(native: torch.Tensor) -> dict[str, Any]:
    """Figures of a tensor that is equal in every bit where it must be."""
    zero = dict.fromkeys(("mismatched", "finite", "pattern", "extra_nan", "extra_inf", "both_nan", "matched"), 0)
    floats = dict.fromkeys(("max_abs", "max_rel", "relative", "squares", "golden"), "0.0")
    none = dict.fromkeys(("worst", "group", "element"))
    return {"elements": native.numel(), **zero, **floats, **none, "unit": "1.0"}


def exact(native: torch.Tensor, got: torch.Tensor, float64: torch.Tensor | None) -> dict[str, Any]:
    """Figures where every bit must be equal: integers, bools, copies. All flat."""
    found = equal_figures(native)
    if equal_bits(raw_bytes(native), raw_bytes(got)):
        return found
    size = native.element_size()
    pairs = zip(raw_bytes(native).split(CHUNK * size), raw_bytes(got).split(CHUNK * size), strict=True)
    for number, (want, have) in enumerate(pairs):
        differ = (want != have).view(-1, size).any(1)
        if found["worst"] is None and bool(differ.any()):
            found["worst"] = ["inf", number * CHUNK + int(differ.to(torch.uint8).argmax())]
        found["mismatched"] += int(differ.sum())
    found["element"] = _element(found["worst"] and found["worst"][1], native, float64, got)
    return found


def _element(
    at: int | None, native: torch.Tensor, float64: torch.Tensor | None, got: torch.Tensor
) -> dict[str, Any] | None:
    """The bytes of the worst element."""
    if at is None:
        return None

    def raw(flat: torch.Tensor) -> list[int]:
        return raw_bytes(flat[at : at + 1]).tolist()

    return {"native": raw(native), "float64": None if float64 is None else raw(float64), "got": raw(got)}
