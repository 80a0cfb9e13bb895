"""Numbers of the graphs: formulas for integers, and texts for floats, that hold in all cases of a problem."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sympy

from tilewright.teacher.capture import Captured
from tilewright.teacher.sizes import Size, Sizes, Unsupported, atomic


@dataclass(frozen=True)
class Varying:
    """A number of the graph that is another one in each case."""

    values: tuple[Any, ...]


@dataclass(frozen=True)
class HostNumber:
    """A float that host code knows under this text."""

    text: str


class Numbers:
    """What the numbers of a problem's graphs are called."""

    cases: list[Captured]
    sizes: Sizes

    def argument_symbols(self) -> None:
        """Integers that differ between cases among the constructor's arguments."""
        self.arguments: dict[tuple[Any, ...], str] = {}
        for name in self.cases[0].numbers_args:
            values = tuple(case.numbers_args.get(name) for case in self.cases)
            numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
            if len(set(values)) > 1 and numbers:
                self.arguments.setdefault(values, f"self.{name}")
        for name in self.cases[0].input_numbers:
            values = tuple(case.input_numbers.get(name) for case in self.cases)
            self.arguments.setdefault(values, name)

    def size(self, number: Any, hints: Sequence[Size] = ()) -> Size:
        """A formula for an integer of the graph."""
        if isinstance(number, sympy.Expr):
            return number
        values = number.values if isinstance(number, Varying) else (number,) * len(self.cases)
        for hint in hints:
            if self.sizes.of(hint) == tuple(values):
                return hint
        if isinstance(number, Varying):
            for symbol, known in self.sizes.values.items():
                if known == values:
                    return symbol
            if values in self.arguments:
                host = self.arguments[values]
                return self.sizes.symbol(host.split(".")[-1].replace("[", "_").replace("]", ""), values, host)
        return self.sizes.find(values, list(hints))

    def number(self, value: Any) -> Any:
        """A scalar of the graph as a constant, or as what host code knows it by."""
        if isinstance(value, Varying):
            if value.values in self.arguments:
                return HostNumber(self.arguments[value.values])
            if all(isinstance(v, int) for v in value.values):
                return HostNumber(f"size:{self.size(value)}")
            if (power := self.power_of_size(value.values)) is not None:
                return power
            raise Unsupported(f"no formula for a number that is {value.values} in the problem's cases")
        if (
            isinstance(value, int | float)
            and not isinstance(value, bool)
            and (value,) * len(self.cases) in self.arguments
        ):
            return HostNumber(self.arguments[(value,) * len(self.cases)])
        return value

    def power_of_size(self, values: tuple[float, ...]) -> HostNumber | None:
        """The root of a size, its inverse and the like: the usual factors in attention and embeddings."""
        for symbol, known in self.sizes.values.items():
            for exponent in (0.5, -0.5, -1.0, -2.0, -0.25):
                if all(abs(n**exponent - v) <= 1e-9 * abs(v) for n, v in zip(known, values, strict=True)):
                    return HostNumber(f"{symbol} ** {exponent}")
        for names, host in self.arguments.items():
            for exponent in (0.5, -0.5, -1.0, -0.25):
                if all(n > 0 and abs(n**exponent - v) <= 1e-9 * abs(v) for n, v in zip(names, values, strict=True)):
                    return HostNumber(f"{host} ** {exponent}")
        for exponent in (0.5, -0.5, -1.0, -0.25):
            roots = tuple(round(v ** (1 / exponent)) if v > 0 else 0 for v in values)
            if all(n and abs(n**exponent - v) <= 1e-9 * v for n, v in zip(roots, values, strict=True)):
                try:
                    return HostNumber(f"{atomic(self.sizes.find(roots))} ** {exponent}")
                except Unsupported:
                    continue
        return self.share_of_size(values)

    def share_of_size(self, values: tuple[float, ...]) -> HostNumber | None:
        """A constant over a product of up to three sizes: the factors in derivatives of means. Of several, the constant
        that is shortest to write."""
        found = []
        for count in (1, 2, 3):
            for symbols in itertools.combinations(self.sizes.values, count):
                known = [
                    math.prod(self.sizes.values[symbol][case] for symbol in symbols) for case in range(len(values))
                ]
                share = values[0] * known[0]
                if share and all(abs(v * n - share) <= 1e-9 * abs(share) for v, n in zip(values, known, strict=True)):
                    found.append((repr(float(f"{share:.12g}")), " * ".join(symbol.name for symbol in symbols)))
        shares = [
            HostNumber(f"{share} / ({product})") for share, product in sorted(found, key=lambda pair: len(pair[0]))
        ]
        return next(iter(shares), None)

    def plain(self, value: Any, what: str) -> Any:
        """A number that must be the same in all cases."""
        if isinstance(value, Varying):
            raise Unsupported(f"{what} differs between the problem's cases")
        return value
