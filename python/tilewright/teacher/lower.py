"""From ATen operations to nodes: walks the graphs of all cases side by side."""

from __future__ import annotations

import inspect
import operator
from typing import Any

import sympy
import torch
from torch.fx import Node as FxNode
from torch.fx.experimental.proxy_tensor import make_fx

from tilewright.teacher import ir
from tilewright.teacher.builder import Builder, unsqueeze
from tilewright.teacher.capture import Problem, is_fake
from tilewright.teacher.host_numbers import Varying
from tilewright.teacher.ir import Const, Lazy, Op, Read, Value
from tilewright.teacher.rules import (
    COPIES,
    RULES,
    SHAPE_ONLY,
    VIEWS,
    Rule,
    base_name,
    feeds_no_template,
    load_rules,
    rule_of,
    uses,
)
from tilewright.teacher.sizes import Size, Sizes, Unsupported

DIM_NAMES = {
    0: (),
    1: ("size",),
    2: ("rows", "cols"),
    3: ("batch", "length", "features"),
    4: ("batch", "channels", "height", "width"),
    5: ("batch", "channels", "depth", "height", "width"),
}


class Lowering(Builder):
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
        if all((p == first or (p != p and first != first)) and type(p) is type(first) for p in parts):
            return first  # NaN is not equal to itself
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
