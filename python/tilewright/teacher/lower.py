"""From ATen operations to nodes: walks the graphs of all cases side by side."""

from __future__ import annotations

import inspect
import itertools
import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import sympy
import torch
from torch.fx import Node as FxNode
from torch.fx.experimental.proxy_tensor import make_fx

from tilewright.teacher import ir
from tilewright.teacher.capture import Problem, is_fake
from tilewright.teacher.ir import Const, Gather, Lazy, NotAffine, Op, Pointwise, Read, Reduce, Value, View
from tilewright.teacher.sizes import Size, Sizes, Unsupported, atomic


@dataclass(frozen=True)
class Varying:
    """A number of the graph that is another one in each case."""

    values: tuple[Any, ...]


@dataclass(frozen=True)
class HostNumber:
    """A float that host code knows under this text."""

    text: str


Rule = Callable[..., Any]
RULES: dict[str, Rule] = {}
VIEWS: set[str] = set()
"""Operations whose result shares memory with their first argument, or may."""


def lowers(*names: str, view: bool = False) -> Callable[[Rule], Rule]:
    """Registers the rule of some operations, by their names without namespace and overload."""

    def register(rule: Rule) -> Rule:
        for name in names:
            RULES[name] = rule
            if view:
                VIEWS.add(name)
        return rule

    return register


DIM_NAMES = {
    0: (),
    1: ("size",),
    2: ("rows", "cols"),
    3: ("batch", "length", "features"),
    4: ("batch", "channels", "height", "width"),
    5: ("batch", "channels", "depth", "height", "width"),
}


class Lowering:
    """The state of lowering one problem."""

    def __init__(self, problem: Problem, options: dict[str, Any]) -> None:
        load_rules()
        self.problem = problem
        self.options = options
        self.cases = problem.cases
        self.sizes = Sizes(len(self.cases))
        self.nodes: list[ir.Node] = []
        self.mutated: dict[int, tuple[Value, Lazy]] = {}
        self.label, self.between = "", False
        self.inputs: list[Value] = []
        self.state: dict[str, Value] = {}
        self.seeds: list[str] = []
        self.meta: list[Any] = []
        self.names: dict[str, int] = {}
        self.bases, self.keep, self.diagonals, self.starts = {}, [], {}, {}
        self.argument_symbols()

    # numbers ------------------------------------------------------------------------------------------------------

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

    # making things ------------------------------------------------------------------------------------------------

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
        self, kind: str, lazy: Lazy, dims: Sequence[int], dtype: torch.dtype, keepdim: bool = False, name: str = ""
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
        self.add(Reduce(self.label, outs, kind, lazy.term, lazy.shape, tuple(dims)))
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

    # the walk -----------------------------------------------------------------------------------------------------

    def run(self) -> list[Lazy]:
        """Lowers the graphs; gives the results in order."""
        graphs = [list(case.graph.graph.nodes) for case in self.cases]
        if len({len(g) for g in graphs}) > 1 or any(
            len({str(n.target) if n.op == "call_function" else n.op for n in row}) > 1
            for row in zip(*graphs, strict=True)
        ):
            raise Diverging
        env: dict[FxNode, Any] = {}
        self.env = env
        self.place(graphs, env)
        results = self.walk(graphs, env)
        return results

    def place(self, graphs: list[list[FxNode]], env: dict[FxNode, Any]) -> None:
        """Placeholders: the state, then the inputs."""
        rows = [row for row in zip(*graphs, strict=True) if row[0].op == "placeholder"]
        first = self.cases[0]
        for i, row in enumerate(rows[len(first.state) :]):
            path = first.tensor_paths[i]
            name = path.replace("[", "_").replace("]", "").replace("'", "").replace('"', "").replace(".", "_")
            metas = [node.meta["val"] for node in row]
            names = DIM_NAMES.get(metas[0].dim(), tuple(f"extent{j}" for j in range(metas[0].dim())))
            shape = tuple(
                self.sizes.symbol(names[d], tuple(int(m.shape[d]) for m in metas), f"{name}.shape[{d}]")
                for d in range(metas[0].dim())
            )
            shape = self.unify(shape)
            value = Value(self.fresh(name), shape, metas[0].dtype, "input", path)
            self.inputs.append(value)
            env[row[0]] = self.read(value)
        for name, row in zip(first.state, rows, strict=False):
            env[row[0]] = self.read(self.state_value(name, [node.meta["val"] for node in row]))

    def unify(self, shape: tuple[Size, ...]) -> tuple[Size, ...]:
        """Extents that agree in all cases with one of an earlier input, in more cases than one, are that one."""
        result = []
        symbols = list(self.sizes.values)
        for size in shape:
            if size.is_Symbol and len(set(self.sizes.of(size))) > 1:
                for known in symbols:
                    if known != size and self.sizes.of(known) == self.sizes.of(size):
                        size = known
                        break
            result.append(size)
        return tuple(result)

    def state_value(self, name: str, metas: list[torch.Tensor]) -> Value:
        path = "self." + name
        parts = path.split(".")
        text = "".join(f"[{p}]" if p.isdigit() else (f".{p}" if i else p) for i, p in enumerate(parts))
        roles = {1: ("features",), 2: ("out_features", "in_features")}
        rank = metas[0].dim()
        names = roles.get(rank, ("out_channels", "in_channels", "kernel_d", "kernel_h", "kernel_w")[:2])
        names = tuple(names) + tuple(f"kernel_{i}" for i in range(rank - len(names)))
        shape = tuple(
            self.sizes.symbol(names[d], tuple(int(m.shape[d]) for m in metas), f"{text}.shape[{d}]")
            for d in range(rank)
        )
        shape = self.unify(shape)
        value = Value(self.fresh(parts[-1]), shape, metas[0].dtype, "state", text)
        self.state[name] = value
        return value

    def walk(self, graphs: list[list[FxNode]], env: dict[FxNode, Any]) -> list[Any]:
        """Lowers one row of nodes after the other."""
        for row in zip(*graphs, strict=True):
            node = row[0]
            if node.op == "placeholder":
                continue
            if node.op == "get_attr":
                env[node] = self.constant(row)
                continue
            if node.op == "output":
                found = self.merge([n.args for n in row], graphs, env)[0]
                return list(found) if isinstance(found, list | tuple) else [found]
            args = self.merge(even_args(row), graphs, env)
            kwargs = {k: self.merge([n.kwargs[k] for n in row], graphs, env) for k in node.kwargs}
            env[node] = self.call(row, args, kwargs, env)
        return []

    def constant(self, row: tuple[FxNode, ...]) -> Any:
        """A tensor that is neither state nor input."""
        case = self.cases[0]
        metas = []
        for at, node in zip(self.cases, row, strict=True):
            found = getattr(at.graph, node.target, None)
            if found is None:
                found = node.meta.get("val")
            metas.append(found)
        path = case.constants.get(row[0].target)
        if path is not None:
            return self.read(self.state_value(path, metas))
        return self.literal(metas)

    def literal(self, tensors: list[Any]) -> Lazy:
        """A small tensor of numbers: one number, or a choice by the flat index."""
        values = [getattr(t, "constant", None) if is_fake(t) else t for t in tensors]
        first = values[0]
        if any(v is None or v.shape != first.shape or not torch.equal(v, first) for v in values):
            raise Unsupported("a tensor constant made in forward, with another value in each case")
        if first.numel() > 64 or first.dtype.is_complex:
            raise Unsupported(f"a tensor constant of {first.numel()} elements made in forward")
        numbers = first.reshape(-1).tolist()
        shape = tuple(sympy.Integer(n) for n in first.shape)
        found = self.const(numbers[-1], first.dtype)
        at = self.iota((sympy.Integer(len(numbers)),), 0)
        for i in range(len(numbers) - 2, -1, -1):
            here = self.op("eq", torch.bool, at, self.const(i, torch.int64))
            found = self.op("where", first.dtype, here, self.const(numbers[i], first.dtype), found)
        if len(numbers) == 1:
            return self.expand(found, shape)
        return self.view(self.realise(found, "constant"), lambda v: v.reshape(shape, self.sizes))

    def merge(self, parts: list[Any], graphs: list[list[FxNode]], env: dict[FxNode, Any]) -> Any:
        """One argument in all cases: tensors by the environment, numbers as vectors where they differ."""
        first = parts[0]
        if isinstance(first, FxNode):
            return env[first]
        if isinstance(first, list | tuple):
            if len({len(p) for p in parts}) > 1:
                raise Diverging
            return [self.merge([p[i] for p in parts], graphs, env) for i in range(len(first))]
        if all(p == first and type(p) is type(first) for p in parts):
            return first
        if all(isinstance(p, int | float) and not isinstance(p, bool) for p in parts):
            return Varying(tuple(parts))
        raise Diverging

    def call(self, row: tuple[FxNode, ...], args: list[Any], kwargs: dict[str, Any], env: dict[FxNode, Any]) -> Any:
        """One operation."""
        node = row[0]
        if node.target is operator.getitem:
            if args[0][args[1]] is None and node.users:
                raise Unsupported(f"result {args[1]} of {base_name(row[0].args[0].target)}")
            return args[0][args[1]]
        name = base_name(node.target)
        if name in ("_set_grad_enabled", "_assert_tensor_metadata", "sym_constrain_range"):
            return None
        self.label = name.strip("_")
        self.meta = [n.meta.get("val") for n in row]
        self.between = feeds_no_template(node)
        functional = name
        in_place = (
            name.endswith("_")
            and not name.endswith("__")
            and hasattr(node.target, "_schema")
            and any(a.alias_info is not None and a.alias_info.is_write for a in node.target._schema.arguments)
        )
        if in_place:
            functional = name[:-1]
        rule = rule_of(node.target, name, functional)
        result = self.apply(rule, node.target, args, kwargs) if rule else self.decompose(row, args, kwargs)
        if name in SHAPE_ONLY:
            return result
        if in_place:
            target = node.args[0]
            result = self.cast(result, self.meta[0].dtype) if isinstance(result, Lazy) else result
            result = self.mutate(target, result, env)
            self.check(result)
            return result
        self.check(result)
        if self.options.get("rounded", True) and isinstance(result, Lazy):
            result = self.rounded(result)
        return self.settle(node, result)

    def rounded(self, result: Lazy) -> Lazy:
        """A half as the reference leaves it between two operations: rounded, though it stays in registers.

        Scores of attention, which a product has left in float32, stay so until they are weights.
        """
        half = result.dtype in (torch.float16, torch.bfloat16)
        if not half or not isinstance(result.term, Op) or result.term.op == "rounded":
            return result
        makers = [(r.dtype, r.view.value.node) for r in ir.reads(result.term)]
        if any(dtype == torch.float32 and isinstance(node, ir.Template) for dtype, node in makers):
            return result
        return Lazy(Op(result.dtype, result.term.name, "rounded", (result.term,)), result.shape)

    def apply(self, rule: Rule, target: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """A rule on the arguments of an operation; one that it has no place for is not for it to leave out."""
        try:
            inspect.signature(rule).bind(self, *args, **kwargs)
        except TypeError as error:
            raise Unsupported(f"{target} with these arguments: {error}") from None
        return rule(self, *args, **kwargs)

    def settle(self, node: FxNode, result: Any) -> Any:
        """Puts a value that is used more than once into memory, if computing it takes more than a read."""
        if isinstance(result, Lazy) and not isinstance(result.term, Read | Const) and uses(node) > 1:
            return self.realise(result)
        return result

    def mutate(self, target: FxNode, result: Lazy, env: dict[FxNode, Any]) -> Lazy:
        """What an in-place operation leaves in its target, for all later uses."""
        if not isinstance(target, FxNode):
            raise Unsupported("an in-place operation on a list")
        if target.op == "call_function" and base_name(target.target) in VIEWS - COPIES:
            return self.mutate_part(target, result, env)
        old = env[target]
        result = self.expand(result, old.shape)
        if not isinstance(result.term, Read | Const):
            result = self.realise(result)
        base = old.term.view.value if target.op in ("placeholder", "get_attr") else self.bases.get(id(old))
        if base is not None:
            self.mutated[id(base)] = (base, result)
            self.bases[id(result)] = base
        for node, value in list(env.items()):
            if value is old:
                env[node] = result
        env[target] = result
        self.keep.append(result)
        return result

    def mutate_part(self, target: FxNode, result: Lazy, env: dict[FxNode, Any]) -> Lazy:
        """An in-place operation on a slice: the whole, with other elements where the slice lies."""
        name, whole = base_name(target.target), target.args[0]
        if name not in ("slice", "select", "narrow", "detach", "alias") or not isinstance(whole, FxNode):
            raise Unsupported(f"an in-place operation on a view ({name})")
        for user in whole.users:
            if user is not target and user in env and isinstance(env[user], Lazy):
                later = any(after not in env for after in user.users)
                if base_name(user.target) in VIEWS - COPIES and later:
                    raise Unsupported("an in-place operation on a view while another one is in use")
        old = env[whole]
        part = env[target]
        result = self.share(self.expand(result, part.shape))
        new = result if part is old else self.replaced(old, part, target, result)
        label, meta = self.label, self.meta
        self.mutate(whole, new, env)
        self.label, self.meta = label, meta
        env[target] = result
        return result

    def replaced(self, whole: Lazy, part: Lazy, target: FxNode, new: Lazy) -> Lazy:
        """`whole` with `new` in the place of a slice of it."""
        from tilewright.teacher.ops_view import size_const

        dim = (target.args[1] if len(target.args) > 1 else 0) % len(whole.shape)
        start, step = self.starts.get(id(part), (None, 1))
        if start is None or step != 1:
            raise Unsupported("an in-place operation on a slice with a step, or of a computed tensor")
        if base_name(target.target) == "select":
            new, part = unsqueeze(new, dim), unsqueeze(part, dim)
        length = part.shape[dim]
        if not isinstance(new.term, Read) or new.term.view.guards:
            new = self.realise_again(new)
        placed = self.view(new, lambda v: v.pad(dim, start, whole.shape[dim] - start - length, 0))
        placed = Lazy(placed.term, whole.shape)
        at = self.iota(whole.shape, dim)
        inside = self.op("ge", torch.bool, at, size_const(self, start))
        before = self.op("lt", torch.bool, at, size_const(self, start + length))
        inside = self.op("and", torch.bool, inside, before)
        return self.op("where", whole.dtype, inside, self.cast(placed, whole.dtype), whole, hint="written")

    def write_state(self, old: Lazy, new: Lazy) -> None:
        """A new version of a state tensor, written by an operation that has no result for it."""
        base = old.term.view.value
        new = self.realise_again(self.cast(new, base.dtype))
        self.mutated[id(base)] = (base, new)
        for node, value in list(self.env.items()):
            if value is old:
                self.env[node] = new
        self.keep.append(new)

    bases: dict[int, Value | None]
    env: dict[FxNode, Any]

    def check(self, result: Any) -> None:
        """The shapes and dtypes worked out must be those of the trace."""
        results = result if isinstance(result, list | tuple) else [result]
        for k, one in enumerate(results):
            metas = [m[k] if isinstance(m, list | tuple) else m for m in self.meta]
            if isinstance(one, Lazy) and isinstance(metas[0], torch.Tensor):
                if one.dtype != metas[0].dtype:
                    raise Unsupported(f"{self.label}: {one.dtype} worked out, {metas[0].dtype} traced")
                for i, meta in enumerate(metas):
                    shape = tuple(self.sizes.of(s)[i] for s in one.shape)
                    if shape != tuple(meta.shape):
                        raise Unsupported(f"{self.label}: shape {shape} worked out, {tuple(meta.shape)} traced")

    def decompose(self, row: tuple[FxNode, ...], args: list[Any], kwargs: dict[str, Any]) -> Any:
        """An operation without a rule, by torch's own definition of it in terms of others."""
        graphs = [decomposed(node) for node in row]
        flat_args = [a for a in flatten((args, kwargs)) if isinstance(a, Lazy)]
        lists = [list(g.graph.nodes) for g in graphs]
        if len({len(g) for g in lists}) > 1:
            raise Diverging
        env: dict[FxNode, Any] = {}
        places = [n for n in lists[0] if n.op == "placeholder"]
        for place, value in zip(places, flat_args, strict=True):
            env[place] = self.share(value) if uses(place) > 1 else value
        label = self.label
        results = self.walk(lists, env)
        self.label, self.meta = label, [n.meta.get("val") for n in row]
        single = isinstance(self.meta[0], torch.Tensor)
        return results[0] if single else results

    keep: list[Any]
    diagonals: dict[int, Lazy]
    starts: dict[int, tuple[Size, int]]
    """Where slices start in what they are slices of, and their steps, by the slice's id."""


class Diverging(Exception):
    """The cases have different graphs."""


SHAPE_ONLY = {"sym_size"}
COPIES = {"clone", "lift_fresh_copy"}
"""Views to the rules whose results are memory of their own to the problem."""
PRIMS = {"convert_element_type"}
"""Operations of `prims` that have a rule; that library gives other arguments to many of ATen's names."""


def even_args(row: tuple[FxNode, ...]) -> list[tuple[Any, ...]]:
    """Positional arguments of an operation in all cases, with defaults where a case leaves out what another gives."""
    parts = [n.args for n in row]
    length = max(len(p) for p in parts)
    if all(len(p) == length for p in parts):
        return parts
    defaults = [a.default_value for a in row[0].target._schema.arguments]
    return [(*p, *defaults[len(p) : length]) for p in parts]


def flatten(value: Any) -> list[Any]:
    """Leaves of nested lists and dicts."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return [leaf for item in value for leaf in flatten(item)]
    return [value]


def base_name(target: Any) -> str:
    """`relu` for `aten.relu.default`."""
    return (
        target._schema.name.split("::")[-1] if hasattr(target, "_schema") else getattr(target, "__name__", str(target))
    )


def rule_of(target: Any, *names: str) -> Rule | None:
    """The rule of an operation, under the first of these names that has one. Other libraries reuse ATen's names."""
    if getattr(target, "namespace", "aten") != "aten" and names[0] not in PRIMS:
        return None
    return next((RULES[name] for name in names if name in RULES), None)


TEMPLATES = ("mm", "bmm", "matmul", "linear", "einsum", "conv", "attention", "addmm", "lstm", "gru", "rnn")


def feeds_no_template(node: FxNode) -> bool:
    """Whether a result is only an operand of element-wise operations and reductions, not the problem's result."""
    for user in node.users:
        if user.op == "output" or any(t in base_name(user.target) for t in TEMPLATES):
            return False
        if base_name(user.target) in VIEWS and not feeds_no_template(user):
            return False
    return bool(node.users)


def uses(node: FxNode) -> int:
    """How many operations use a result, looking through views."""
    total = 0
    for user in node.users:
        if user.op == "call_function" and base_name(user.target) in VIEWS:
            total += max(uses(user), 1)
        else:
            total += 1
    return total


def decomposed(node: FxNode) -> Any:
    """The graph of one operation in terms of core operations, or one level of its own definition."""
    from torch._decomp import core_aten_decompositions, decomposition_table, get_decompositions

    def meta(value: Any) -> Any:
        return value.meta["val"] if isinstance(value, FxNode) else value

    args = torch.fx.node.map_arg(node.args, meta)
    kwargs = torch.fx.node.map_arg(node.kwargs, meta)
    leaves, spec = torch.utils._pytree.tree_flatten((args, kwargs))
    slots = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    table = dict(core_aten_decompositions())
    extra = getattr(torch.ops.aten, "binary_cross_entropy_with_logits", None)
    if extra is not None:
        table.update(get_decompositions([extra, torch.ops.aten.binary_cross_entropy]))
    if node.target in decomposition_table:
        table.setdefault(node.target, decomposition_table[node.target])
    for kept in list(table):
        name = base_name(kept)
        if name in RULES and name != base_name(node.target):
            table.pop(kept)

    def call(*tensors: torch.Tensor) -> Any:
        filled = list(leaves)
        for slot, tensor in zip(slots, tensors, strict=True):
            filled[slot] = tensor
        inner_args, inner_kwargs = torch.utils._pytree.tree_unflatten(filled, spec)
        return node.target(*inner_args, **inner_kwargs)

    tensors = [leaves[i] for i in slots]
    mode = next((t.fake_mode for t in tensors if hasattr(t, "fake_mode")), None)
    try:
        with torch.no_grad():
            made = make_fx(call, decomposition_table=table, tracing_mode="real")(*tensors)
    except Exception as error:
        raise Unsupported(f"{base_name(node.target)}: {type(error).__name__}: {str(error)[:200]}") from error
    del mode
    if any(n.op == "call_function" and n.target is node.target for n in made.graph.nodes):
        raise Unsupported(f"the operation {node.target} is not known to the teacher")
    return made


def unsqueeze(lazy: Lazy, axis: int) -> Lazy:
    """Adds a dimension of extent 1."""
    shape = (*lazy.shape[:axis], ir.ONE, *lazy.shape[axis:])
    return lazy.change(shape, lambda view: view.unsqueeze(axis))


def gather(lowering: Lowering, value: Value, index: Sequence[Lazy]) -> Lazy:
    """Elements of a value at computed indices, which are broadcast."""
    shape = lowering.broadcast_shape([i.shape for i in index])
    terms = tuple(lowering.expand(i, shape).term for i in index)
    return Lazy(Gather(value.dtype, "picked", value, terms), shape)


def load_rules() -> None:
    """Imports the modules that register rules."""
    from tilewright.teacher import (  # noqa: F401
        ops_order,
        ops_pointwise,
        ops_recurrent,
        ops_reduce,
        ops_scatter,
        ops_template,
        ops_view,
    )
