"""Sizes as expressions: every extent is known by its formula and by its value in each case of the problem.

Two sizes are the same if their values agree in all cases. The formula is what generated code says.
"""

from __future__ import annotations

import re
from typing import Any

import sympy
from sympy.printing.str import StrPrinter

Size = sympy.Expr


class FloorDiv(sympy.Function):
    """`a // b` of integers that are not negative (numerator) and positive (denominator)."""

    nargs = 2

    @classmethod
    def eval(cls, a: Size, b: Size) -> Size | None:
        if b == 1:
            return a
        if a.is_Integer and b.is_Integer:
            return sympy.Integer(int(a) // int(b))
        quotient = sympy.cancel(a / b)
        if quotient.is_Integer:
            return quotient
        if (
            quotient.free_symbols
            and quotient.is_polynomial()
            and all(c.is_Integer for c in sympy.Poly(quotient).coeffs())
        ):
            return quotient
        return None


class Printer(StrPrinter):
    """Python text of a size."""

    def _print_FloorDiv(self, expr: FloorDiv) -> str:
        a, b = (self._print(arg) if arg.is_Symbol or arg.is_Integer else f"({self._print(arg)})" for arg in expr.args)
        return f"{a} // {b}"

    def _print_Mul(self, expr: sympy.Mul) -> str:
        coefficient, factors = expr.as_coeff_mul()
        plain = sorted((f for f in factors if not f.has(FloorDiv)), key=lambda f: order_of(f))
        other = [f for f in factors if f.has(FloorDiv)]
        texts = [self.parenthesize(f, 50) for f in plain] + [f"({self._print(f)})" for f in other]
        if coefficient == -1:
            return "-" + " * ".join(texts)
        if coefficient != 1:
            texts.insert(0, str(coefficient))
        return " * ".join(texts)

    def _print_Pow(self, expr: sympy.Pow, rational: bool = False) -> str:
        base, exponent = expr.args
        if exponent.is_Integer and 1 < int(exponent) <= 4:
            return " * ".join([self.parenthesize(base, 50)] * int(exponent))
        return super()._print_Pow(expr, rational)


def order_of(factor: Size) -> tuple[int, str]:
    """Products are printed in the order in which their symbols were made."""
    symbols = list(factor.free_symbols)
    return (min((ORDER.get(s.name, 0) for s in symbols), default=0), str(factor))


ORDER: dict[str, int] = {}


def text(size: Size | int) -> str:
    """A size as Python."""
    return Printer().doprint(sympy.sympify(size))


def atomic(size: Size | int) -> str:
    """A size as Python, in parentheses unless it is one name or number."""
    shown = text(size)
    return shown if re.fullmatch(r"\w+", shown) else f"({shown})"


class Sizes:
    """The symbols of one problem: name, value in each case, and how host code gets it."""

    def __init__(self, cases: int) -> None:
        self.cases = cases
        self.values: dict[sympy.Symbol, tuple[int, ...]] = {}
        self.host: dict[sympy.Symbol, str] = {}
        self.formulas: dict[sympy.Symbol, Size] = {}
        self.cache: dict[Size, tuple[int, ...]] = {}
        ORDER.clear()

    def symbol(self, name: str, values: tuple[int, ...], host: str) -> Size:
        """A new symbol, under a free name; the number itself where it is 1 in all cases."""
        if set(values) == {1}:
            return sympy.Integer(1)
        taken = {symbol.name for symbol in self.values}
        free, n = name, 2
        while free in taken:
            free, n = f"{name}_{n}", n + 1
        symbol = sympy.Symbol(free, integer=True, positive=True)
        self.values[symbol] = tuple(values)
        self.host[symbol] = host
        ORDER[free] = len(ORDER)
        return symbol

    def derive(self, name: str, formula: Size) -> Size:
        """A name for a size that is computed from others, unless it is a number, a symbol or a product of them."""
        formula = sympy.expand(formula)
        if formula.is_Symbol or (len(set(self.of(formula))) == 1 and self.cases > 1):
            return formula if formula.is_Symbol else sympy.Integer(self.of(formula)[0])
        if formula.is_Integer or (formula.is_Mul and all(f.is_Symbol or f.is_Integer for f in formula.args)):
            return formula
        for symbol, known in self.formulas.items():
            if known == formula:
                return symbol
        symbol = self.symbol(name, self.of(formula), text(formula))
        if symbol.is_Symbol:
            self.formulas[symbol] = formula
        return symbol

    def of(self, size: Size | int) -> tuple[int, ...]:
        """The value in each case."""
        size = sympy.sympify(size)
        if size not in self.cache:
            if size.is_Integer:
                self.cache[size] = (int(size),) * self.cases
            else:
                names = sorted(size.free_symbols, key=lambda s: s.name)
                code = eval(f"lambda {', '.join(s.name for s in names)}: {text(size)}")  # our own text
                self.cache[size] = tuple(code(*(self.values[s][i] for s in names)) for i in range(self.cases))
        return self.cache[size]

    def same(self, a: Size | int, b: Size | int) -> bool:
        """Whether two sizes agree in all cases."""
        return a == b or self.of(a) == self.of(b)

    def is_one(self, size: Size | int) -> bool:
        """Whether an extent is 1 in every case."""
        return all(v == 1 for v in self.of(size))

    def product(self, sizes: Any) -> Size:
        result = sympy.Integer(1)
        for size in sizes:
            result = result * size
        return result

    def quotient(self, a: Size, b: Size) -> Size:
        """`a / b`, known to have no rest."""
        return FloorDiv(sympy.expand(a), sympy.expand(b))

    def find(self, values: tuple[int, ...], hints: list[Size] = ()) -> Size:
        """A formula for numbers seen in the graph: one of the hints, a constant, a symbol, or a product or quotient."""
        values = tuple(int(v) for v in values)
        for hint in hints:
            if self.of(hint) == values:
                return hint
        if len(set(values)) == 1:
            return sympy.Integer(values[0])
        symbols = list(self.values)
        for symbol in symbols:
            if self.values[symbol] == values:
                return symbol
        known = [*hints, *symbols]
        for a in known:
            x = self.of(a)
            for constant in (1, 2, 3, 4, 8):
                for made in (a - constant, a + constant, a * constant, FloorDiv(a, sympy.Integer(constant))):
                    if self.of(made) == values:
                        return made
            for b in known:
                y = self.of(b)
                if all(p * q == v for p, q, v in zip(x, y, values, strict=True)):
                    return a * b
                if all(q and p // q == v for p, q, v in zip(x, y, values, strict=True)):
                    return FloorDiv(a, b)
                if all(p + q == v for p, q, v in zip(x, y, values, strict=True)):
                    return a + b
                if all(p - q == v for p, q, v in zip(x, y, values, strict=True)):
                    return a - b
        raise Unsupported(f"no formula for a size that is {values} in the problem's cases")


class Unsupported(Exception):
    """What the teacher cannot write. The text is the reason that a user reads."""
