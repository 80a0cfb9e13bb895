"""The teacher's intermediate form: values in memory, views of them, element-wise terms, and nodes.

A *view* says how an element of a value is found from an index: the index space is a list of axes, each a list of
atoms (outer to inner); each dimension of the value has a linear form over the atoms. Reshapes split atoms, slices and
paddings shift them, windows and expansions add some. So reading through any chain of views costs no copy.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import sympy
import torch

from tilewright.teacher.sizes import Size, Sizes, Unsupported

ONE, ZERO = sympy.Integer(1), sympy.Integer(0)


class NotAffine(Exception):
    """A view operation that linear forms cannot express: the value must be written to memory first."""


class Atom:
    """One index variable and its extent."""

    __slots__ = ("id", "size")
    counter = itertools.count()

    def __init__(self, size: Size) -> None:
        self.size = size
        self.id = next(Atom.counter)


@dataclass
class Lin:
    """A linear form over index variables (atoms, or dimensions of a kernel)."""

    terms: dict[Any, Size] = field(default_factory=dict)
    const: Size = ZERO

    def scaled(self, factor: Size) -> Lin:
        return Lin({a: c * factor for a, c in self.terms.items()}, self.const * factor)

    def plus(self, other: Lin) -> Lin:
        terms = dict(self.terms)
        for a, c in other.terms.items():
            terms[a] = terms.get(a, ZERO) + c
        return Lin({a: c for a, c in terms.items() if c != 0}, self.const + other.const)

    def substitute(self, atom: Any, by: Lin) -> Lin:
        if atom not in self.terms:
            return self
        rest = Lin({a: c for a, c in self.terms.items() if a is not atom}, self.const)
        return rest.plus(by.scaled(self.terms[atom]))


@dataclass(eq=False)
class Value:
    """A tensor in memory, contiguous."""

    name: str
    shape: tuple[Size, ...]
    dtype: torch.dtype
    origin: str  # input, state, temp, iota
    host: str = ""
    node: Node | None = None
    into: Value | None = None
    """The input or state in whose memory this value is written."""

    def numel(self) -> Size:
        result = ONE
        for size in self.shape:
            result = result * size
        return result

    def strides(self) -> list[Size]:
        return strides_of(self.shape)


def strides_of(shape: Sequence[Size]) -> list[Size]:
    """Strides of a contiguous tensor."""
    result, step = [], ONE
    for size in reversed(shape):
        result.append(step)
        step = step * size
    return result[::-1]


@dataclass
class Guard:
    """`0 <= lin < high`, else the element is the view's fill."""

    lin: Lin
    high: Size
    low: bool = True
    """Whether the lower bound can be missed."""


class View:
    """Elements of a value in another order."""

    def __init__(
        self, value: Value, axes: list[list[Atom]], index: list[Lin], guards: list[Guard] = (), fill: Any = 0
    ) -> None:
        self.value, self.axes, self.index, self.guards, self.fill = value, axes, index, list(guards), fill

    @staticmethod
    def of(value: Value) -> View:
        axes: list[list[Atom]] = []
        index = []
        for size in value.shape:
            atoms = [] if size == 1 else [Atom(size)]
            axes.append(atoms)
            index.append(Lin({atoms[0]: ONE}) if atoms else Lin())
        return View(value, axes, index)

    @property
    def shape(self) -> tuple[Size, ...]:
        sizes = []
        for axis in self.axes:
            size = ONE
            for atom in axis:
                size = size * atom.size
            sizes.append(size)
        return tuple(sizes)

    def offset(self) -> Lin:
        """The offset in memory."""
        result = Lin()
        for lin, stride in zip(self.index, self.value.strides(), strict=True):
            result = result.plus(lin.scaled(stride))
        return result

    def is_plain(self) -> bool:
        """Whether it is the whole value in its own order, reshaped at most."""
        if self.guards:
            return False
        step = ONE
        offset = self.offset()
        if offset.const != 0:
            return False
        for atom in reversed([a for axis in self.axes for a in axis]):
            if sympy.expand(offset.terms.get(atom, ZERO) - step) != 0:
                return False
            step = step * atom.size
        return sympy.expand(step - self.value.numel()) == 0

    # operations: each gives a new view ----------------------------------------------------------------------------

    def _with(self, axes: list[list[Atom]] | None = None, **changes: Any) -> View:
        made = View(self.value, axes if axes is not None else self.axes, self.index, self.guards, self.fill)
        for name, value in changes.items():
            setattr(made, name, value)
        return made

    def _substitute(self, axis: int, atom: Atom, by: Lin, atoms: list[Atom], at: int | None = None) -> View:
        """Replaces one atom everywhere; the axis then has `atoms` in its place."""
        index = [lin.substitute(atom, by) for lin in self.index]
        guards = [Guard(g.lin.substitute(atom, by), g.high, g.low) for g in self.guards]
        axes = [list(a) for a in self.axes]
        place = axes[axis].index(atom)
        axes[axis][place : place + 1] = atoms
        return View(self.value, axes, index, guards, self.fill)

    def _single(self, axis: int) -> Atom | None:
        atoms = self.axes[axis]
        if len(atoms) > 1:
            raise NotAffine
        return atoms[0] if atoms else None

    def permute(self, order: Iterable[int]) -> View:
        return self._with([self.axes[i] for i in order])

    def unsqueeze(self, axis: int) -> View:
        return self._with([*self.axes[:axis], [], *self.axes[axis:]])

    def squeeze(self, axis: int) -> View:
        return self._with([*self.axes[:axis], *self.axes[axis + 1 :]])

    def expand(self, shape: tuple[Size, ...], sizes: Sizes) -> View:
        """Broadcasts to a shape of at least as many dimensions."""
        made = self
        for axis, atoms in enumerate(self.axes):
            size = shape[axis + len(shape) - len(self.axes)]
            for atom in atoms:  # an extent that is 1 in every case, under a formula
                if sizes.is_one(atom.size) and not sizes.is_one(size):
                    made = made._substitute(axis, atom, Lin(), [])
        if made is not self:
            return made.expand(shape, sizes)
        axes = [[] for _ in range(len(shape) - len(self.axes))] + list(self.axes)
        result = []
        for atoms, size in zip(axes, shape, strict=True):
            if atoms or sizes.is_one(size):
                have = ONE
                for atom in atoms:
                    have = have * atom.size
                if not sizes.same(have, size):
                    raise Unsupported(f"a broadcast of {have} to {size} in some cases and not in others")
                result.append(atoms)
            else:
                result.append([Atom(size)])
        return self._with(result)

    def slice(self, axis: int, start: Size, length: Size, step: Size = ONE) -> View:
        atom = self._single(axis)
        if atom is None:
            return self
        if length == 1:
            return self._substitute(axis, atom, Lin({}, start), [])
        new = Atom(length)
        return self._substitute(axis, atom, Lin({new: step}, start), [new])

    def select(self, axis: int, at: Size) -> View:
        return self.slice(axis, at, ONE).squeeze(axis)

    def flip(self, axis: int) -> View:
        atom = self._single(axis)
        if atom is None:
            return self
        new = Atom(atom.size)
        return self._substitute(axis, atom, Lin({new: -ONE}, atom.size - 1), [new])

    def pad(self, axis: int, before: Size, after: Size, fill: Any) -> View:
        """Adds elements at both ends (negative: drops). `fill` must be that of guards that are there already."""
        if self.guards and self.fill != fill:
            raise NotAffine
        atom = self._single(axis)
        size = atom.size if atom else ONE
        new = Atom(size + before + after)
        form = Lin({new: ONE}, -before)
        guard = Guard(form, size)
        if atom is None:
            axes = [list(a) for a in self.axes]
            axes[axis] = [new]
            made = self._with(axes)
        else:
            made = self._substitute(axis, atom, form, [new])
        made.guards = [*made.guards, guard]
        made.fill = fill
        return made

    def window(self, axis: int, out: Size, kernel: Size, stride: Size, dilation: Size) -> View:
        """Splits an axis: element = position * stride + tap * dilation. The axis of taps comes last."""
        atom = self._single(axis)
        position, tap = Atom(out), Atom(kernel)
        atoms = [] if out == 1 else [position]
        form = Lin({} if out == 1 else {position: stride})
        if kernel != 1:
            form = form.plus(Lin({tap: dilation}))
        made = self if atom is None else self._substitute(axis, atom, form, atoms)
        made = made._with([*made.axes, [tap] if kernel != 1 else []])
        if atom is None and out != 1:
            made.axes[axis] = [position]
        return made

    def repeat_inner(self, axis: int, times: Size) -> View:
        """Each element `times` times in a row."""
        if times == 1:
            return self
        axes = [list(a) for a in self.axes]
        axes[axis] = [*axes[axis], Atom(times)]
        return self._with(axes)

    def repeat_outer(self, axis: int, times: Size) -> View:
        """The whole axis `times` times."""
        if times == 1:
            return self
        axes = [list(a) for a in self.axes]
        axes[axis] = [Atom(times), *axes[axis]]
        return self._with(axes)

    def diagonal(self, first: int, second: int, length: Size) -> View:
        """Elements (i, i) of two axes; the new axis comes last."""
        a, b = self._single(first), self._single(second)
        new = Atom(length)
        made = self
        for axis, atom in ((first, a), (second, b)):
            if atom is not None:
                made = made._substitute(axis, atom, Lin({new: ONE}), [])
        axes = [x for i, x in enumerate(made.axes) if i not in (first, second)]
        return made._with([*axes, [new] if length != 1 else []])

    def reshape(self, shape: tuple[Size, ...], sizes: Sizes) -> View:
        """The same elements in the same order under another shape. Splits atoms where boundaries differ."""
        made = self
        todo = [(axis, atom) for axis, atoms in enumerate(made.axes) for atom in atoms]
        result: list[list[Atom]] = [[] for _ in shape]
        for target in range(len(shape) - 1, -1, -1):
            need = shape[target]
            have = ONE
            while not sizes.same(have, need):
                if not todo:
                    raise Unsupported(f"a reshape to {shape}")
                axis, atom = todo.pop()
                rest = sizes.quotient(need, have)
                if divides(sizes, atom.size, rest):
                    result[target].insert(0, atom)
                    have = have * atom.size
                    continue
                if not divides(sizes, rest, atom.size):
                    raise NotAffine
                left = sizes.quotient(atom.size, rest)
                left = next((s for s in shape if sizes.same(s, left)), left)
                outer, inner = Atom(left), Atom(rest)
                made = made._substitute(axis, atom, Lin({outer: rest, inner: ONE}), [outer, inner])
                result[target].insert(0, inner)
                have = have * rest
                todo.append((axis, outer))
        for _, atom in todo:
            if not sizes.is_one(atom.size):
                raise Unsupported(f"a reshape to {shape}")
        return made._with(result)


def divides(sizes: Sizes, a: Size, b: Size) -> bool:
    """Whether `a` divides `b` in every case."""
    return all(y % x == 0 for x, y in zip(sizes.of(a), sizes.of(b), strict=True) if x) and all(sizes.of(a))


# terms ------------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Term:
    """What one element is computed from."""

    dtype: torch.dtype
    name: str = ""


@dataclass(eq=False)
class Read(Term):
    view: View = None  # type: ignore[assignment]


@dataclass(eq=False)
class Const(Term):
    number: Any = 0


@dataclass(eq=False)
class Op(Term):
    op: str = ""
    args: tuple[Term, ...] = ()


@dataclass(eq=False)
class Gather(Term):
    """An element at computed indices, one term for each dimension of a shape that the value has or is viewed in."""

    value: Value = None  # type: ignore[assignment]
    shape: tuple[Size, ...] = ()
    index: tuple[Term, ...] = ()


@dataclass(eq=False)
class Random(Term):
    """A uniform number drawn for the element whose flat number `index` gives."""

    seed: str = ""
    index: Term = None  # type: ignore[assignment]


def children(term: Term) -> tuple[Term, ...]:
    """The terms that a term is made of."""
    if isinstance(term, Op):
        return term.args
    if isinstance(term, Gather):
        return term.index
    return (term.index,) if isinstance(term, Random) else ()


def reads(term: Term) -> list[Read]:
    """All reads in a term, each once."""
    found: dict[int, Read] = {}
    seen: set[int] = set()
    stack = [term]
    while stack:
        at = stack.pop()
        if id(at) in seen:
            continue
        seen.add(id(at))
        if isinstance(at, Read):
            found[id(at)] = at
        stack.extend(children(at))
    return list(found.values())


def gathers(term: Term) -> list[Gather]:
    """All indirect reads in a term."""
    found, seen, stack = [], set(), [term]
    while stack:
        at = stack.pop()
        if id(at) in seen:
            continue
        seen.add(id(at))
        if isinstance(at, Gather):
            found.append(at)
        stack.extend(children(at))
    return found


def map_reads(term: Term, change: Callable[[View], View], memo: dict[int, Term] | None = None) -> Term:
    """The same term with every view changed."""
    memo = {} if memo is None else memo
    if id(term) in memo:
        return memo[id(term)]
    if isinstance(term, Read):
        made: Term = Read(term.dtype, term.name, change(term.view))
    elif isinstance(term, Op):
        made = Op(term.dtype, term.name, term.op, tuple(map_reads(a, change, memo) for a in term.args))
    elif isinstance(term, Gather):
        index = tuple(map_reads(a, change, memo) for a in term.index)
        made = Gather(term.dtype, term.name, term.value, term.shape, index)
    elif isinstance(term, Random):
        made = Random(term.dtype, term.name, term.seed, map_reads(term.index, change, memo))
    else:
        made = term
    memo[id(term)] = made
    return made


@dataclass(eq=False)
class Lazy:
    """A tensor that is not in memory yet: a term for each element of a shape. All its views have that shape."""

    term: Term
    shape: tuple[Size, ...]

    @property
    def dtype(self) -> torch.dtype:
        return self.term.dtype

    def change(self, shape: tuple[Size, ...], change: Callable[[View], View]) -> Lazy:
        return Lazy(map_reads(self.term, change), shape)


# nodes ------------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Node:
    """One step that makes values. `label` is the operation of the problem that it belongs to."""

    label: str
    outs: list[Value]

    def terms(self) -> list[Term]:
        return []

    def inputs(self) -> list[Value]:
        found: dict[int, Value] = {}
        for term in self.terms():
            for read in reads(term):
                found[id(read.view.value)] = read.view.value
            for gather in gathers(term):
                found[id(gather.value)] = gather.value
        return [v for v in found.values() if v.origin != "iota"]


@dataclass(eq=False)
class Pointwise(Node):
    term: Term = None  # type: ignore[assignment]

    def terms(self) -> list[Term]:
        return [self.term]


@dataclass(eq=False)
class Reduce(Node):
    """Over `dims` of `shape`. Kinds: sum, prod, max, min, any, all, argmax, argmin; `moments` has two outputs,
    the mean and the sum of squared deviations."""

    kind: str = ""
    term: Term = None  # type: ignore[assignment]
    shape: tuple[Size, ...] = ()
    dims: tuple[int, ...] = ()
    keeps_nan: bool = True
    """Whether `max` and `min` are NaN where an element is."""

    def terms(self) -> list[Term]:
        return [self.term]


@dataclass(eq=False)
class Template(Node):
    """A step with a kernel of its own making. `views` are its operands, in memory."""

    kind: str = ""
    views: dict[str, View] = field(default_factory=dict)
    attrs: dict[str, Any] = field(default_factory=dict)

    def inputs(self) -> list[Value]:
        return list({id(v.value): v.value for v in self.views.values()}.values())


@dataclass(eq=False)
class Scan(Node):
    """A running total along one dimension of `shape`. Kinds: cumsum, cumprod, logcumsumexp; cummax and cummin, which
    have places too."""

    kind: str = ""
    term: Term = None  # type: ignore[assignment]
    shape: tuple[Size, ...] = ()
    dim: int = 0

    def terms(self) -> list[Term]:
        return [self.term]
