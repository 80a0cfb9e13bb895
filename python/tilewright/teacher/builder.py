"""Nodes and element-wise values being made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from tilewright.teacher import ir
from tilewright.teacher.host_numbers import Numbers, Varying
from tilewright.teacher.ir import Const, Gather, Lazy, NotAffine, Op, Pointwise, Read, Reduce, Value, View
from tilewright.teacher.sizes import Size


class Builder(Numbers):
    """Makes nodes, in order, and the values between them."""

    nodes: list[ir.Node]
    names: dict[str, int]
    label: str
    """The operation that nodes are made for."""

    def fresh(self, name: str) -> str:
        """A free name for a value."""
        name = name.strip("_") or "value"
        n = self.names.get(name, 0)
        self.names[name] = n + 1
        return name if n == 0 else f"{name}_{n + 1}"

    def temp(self, shape: Sequence[Size], dtype: torch.dtype, name: str = "") -> Value:
        return Value(self.fresh(name or self.label), tuple(shape), dtype, "temp")

    def add(self, node: ir.Node) -> None:
        for value in node.outs:
            value.node = node
        self.nodes.append(node)

    def read(self, value: Value) -> Lazy:
        return Lazy(Read(value.dtype, value.name, View.of(value)), value.shape)

    def iota(self, shape: Sequence[Size], dim: int) -> Lazy:
        """The index along one dimension, as an element-wise value."""
        value = Value("index", (shape[dim],), torch.int64, "iota")
        view = View.of(value)
        for axis in range(dim):
            view = view.unsqueeze(axis)
        for _ in range(len(shape) - dim - 1):
            view = view.unsqueeze(len(view.axes))
        return Lazy(Read(torch.int64, "index", view.expand(tuple(shape), self.sizes)), tuple(shape))

    def const(self, number: Any, dtype: torch.dtype, shape: Sequence[Size] = ()) -> Lazy:
        return Lazy(Const(dtype, "", self.number(number)), tuple(shape))

    def lazy(self, value: Any, dtype: torch.dtype | None = None) -> Lazy:
        """An argument as an element-wise value."""
        if isinstance(value, Lazy):
            return value
        if isinstance(value, Value):
            return self.read(value)
        sample = value.values[0] if isinstance(value, Varying) else value
        if dtype is None:
            kinds = {bool: torch.bool, int: torch.int64, float: torch.float32}
            dtype = kinds.get(type(sample), torch.float32)
        return self.const(value, dtype)

    def broadcast_shape(self, shapes: Sequence[Sequence[Size]]) -> tuple[Size, ...]:
        rank = max((len(s) for s in shapes), default=0)
        result: list[Size] = []
        for axis in range(rank):
            size: Size = ir.ONE
            for shape in shapes:
                at = axis - rank + len(shape)
                if at >= 0 and not self.sizes.is_one(shape[at]) and self.sizes.is_one(size):
                    size = shape[at]
            result.append(size)
        return tuple(result)

    def expand(self, lazy: Lazy, shape: Sequence[Size]) -> Lazy:
        shape = tuple(shape)
        if len(lazy.shape) == len(shape) and all(a == b for a, b in zip(lazy.shape, shape, strict=True)):
            return lazy
        return lazy.change(shape, lambda view: view.expand(shape, self.sizes))

    def op(self, name: str, dtype: torch.dtype, *args: Any, hint: str = "") -> Lazy:
        """An element-wise operation on broadcast arguments."""
        lazies = [self.lazy(a) for a in args]
        shape = self.broadcast_shape([a.shape for a in lazies])
        terms = tuple(self.expand(a, shape).term for a in lazies)
        return Lazy(Op(dtype, hint or name, name, terms), shape)

    def cast(self, value: Any, dtype: torch.dtype) -> Lazy:
        lazy = self.lazy(value)
        if lazy.dtype == dtype:
            return lazy
        if isinstance(lazy.term, Const):
            return Lazy(Const(dtype, "", lazy.term.number), lazy.shape)
        return Lazy(Op(dtype, "cast", "cast", (lazy.term,)), lazy.shape)

    def realise(self, lazy: Lazy, name: str = "") -> Lazy:
        """The same in memory."""
        if isinstance(lazy.term, Read) and lazy.term.view.value.origin != "iota" and lazy.term.view.is_plain():
            whole = lazy.term.view
            return Lazy(lazy.term, lazy.shape) if whole.shape == lazy.shape else lazy
        out = self.temp(lazy.shape, lazy.dtype, name or lazy.term.name or self.label)
        self.add(Pointwise(self.label, [out], lazy.term))
        return self.read(out)

    def share(self, lazy: Lazy, name: str = "") -> Lazy:
        """For a value that is used more than once: in memory, unless it is only read or a constant."""
        return lazy if isinstance(lazy.term, Read | Const) else self.realise(lazy, name)

    def memory(self, lazy: Lazy) -> View:
        """A view of memory with these elements, for an operand of a template."""
        if not (isinstance(lazy.term, Read) and not lazy.term.view.guards and lazy.term.view.value.origin != "iota"):
            lazy = self.realise(lazy)
        return lazy.term.view

    def reduce(
        self,
        kind: str,
        lazy: Lazy,
        dims: Sequence[int],
        dtype: torch.dtype,
        keepdim: bool = False,
        name: str = "",
        keeps_nan: bool = True,
    ) -> Any:
        """A reduction; `moments` gives two results."""
        dims = sorted({d % len(lazy.shape) for d in dims}) if lazy.shape else []
        shape = tuple(s for i, s in enumerate(lazy.shape) if i not in dims)
        if not isinstance(lazy.term, Read | Const) and any(
            r.view.value.node is not None and isinstance(r.view.value.node, ir.Template) for r in ir.reads(lazy.term)
        ):
            lazy = self.realise(lazy)  # becomes the epilogue of the template
        names = ("mean", "squares") if kind == "moments" else (name or kind,)
        outs = [self.temp(shape, dtype, n) for n in names]
        self.add(Reduce(self.label, outs, kind, lazy.term, lazy.shape, tuple(dims), keeps_nan))
        results = []
        for out in outs:
            result = self.read(out)
            if keepdim:
                for d in dims:
                    result = unsqueeze(result, d)
            results.append(result)
        return results if kind == "moments" else results[0]

    def view(self, lazy: Lazy, change: Callable[[View], View]) -> Lazy:
        """Applies a view operation to every read of an element-wise value; realises it where that cannot be."""
        try:
            return self._changed(lazy, change)
        except NotAffine:
            return self._changed(self.realise_again(lazy), change)

    def realise_again(self, lazy: Lazy) -> Lazy:
        out = self.temp(lazy.shape, lazy.dtype, lazy.term.name or self.label)
        self.add(Pointwise(self.label, [out], lazy.term))
        return self.read(out)

    def _changed(self, lazy: Lazy, change: Callable[[View], View]) -> Lazy:
        probe = View.of(Value("probe", lazy.shape, lazy.dtype, "temp"))
        shape = change(probe).shape
        return lazy.change(shape, change)


def unsqueeze(lazy: Lazy, axis: int) -> Lazy:
    """Adds a dimension of extent 1."""
    shape = (*lazy.shape[:axis], ir.ONE, *lazy.shape[axis:])
    return lazy.change(shape, lambda view: view.unsqueeze(axis))


def gather(lowering: Builder, whole: Lazy, index: Sequence[Lazy]) -> Lazy:
    """Elements of a tensor in memory, as `realise` gives it, at computed indices, which are broadcast."""
    shape = lowering.broadcast_shape([i.shape for i in index])
    terms = tuple(lowering.expand(i, shape).term for i in index)
    return Lazy(Gather(whole.dtype, "picked", whole.term.view.value, whole.shape, terms), shape)
