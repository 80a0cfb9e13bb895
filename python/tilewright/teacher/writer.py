"""Text of one kernel: its arguments, its lines, and element-wise terms as Triton code."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import sympy
import torch

from tilewright.teacher import ir, sizes
from tilewright.teacher.host_numbers import HostNumber
from tilewright.teacher.ir import Const, Gather, Lin, Op, Random, Read, Term, Value, View, children
from tilewright.teacher.sizes import Size, Sizes, Unsupported

TL = {
    torch.float16: "tl.float16",
    torch.bfloat16: "tl.bfloat16",
    torch.float32: "tl.float32",
    torch.float64: "tl.float64",
    torch.int8: "tl.int8",
    torch.uint8: "tl.uint8",
    torch.int16: "tl.int16",
    torch.int32: "tl.int32",
    torch.int64: "tl.int64",
    torch.bool: "tl.int1",
}

FLOATS = {
    "add": "{0} + {1}",
    "sub": "{0} - {1}",
    "mul": "{0} * {1}",
    "div": "{0} / {1}",
    "maximum": "tl.maximum({0}, {1}, propagate_nan=tl.PropagateNan.ALL)",
    "minimum": "tl.minimum({0}, {1}, propagate_nan=tl.PropagateNan.ALL)",
    "abs": "tl.abs({0})",
    "neg": "-{0}",
    "exp": "tl.exp({0})",
    "exp2": "tl.exp2({0})",
    "log": "tl.log({0})",
    "log2": "tl.log2({0})",
    "sqrt": "tl.sqrt({0})",
    "rsqrt": "tl.rsqrt({0})",
    "sin": "tl.sin({0})",
    "cos": "tl.cos({0})",
    "floor": "tl.floor({0})",
    "ceil": "tl.ceil({0})",
    "erf": "tl.erf({0})",
    "sigmoid": "tl.sigmoid({0})",
    "reciprocal": "1.0 / {0}",
    "where": "tl.where({0}, {1}, {2})",
    "fmod": "libdevice.fmod({0}, {1})",
    "sign": "tl.where({0} > 0, 1.0, tl.where({0} < 0, -1.0, 0.0))",
    "round": "libdevice.nearbyint({0})",
    "pow": "libdevice.pow({0}, {1})",
    "atan2": "libdevice.atan2({0}, {1})",
    "hypot": "libdevice.hypot({0}, {1})",
}
for _name in [
    "log10",
    "log1p",
    "expm1",
    "tan",
    "tanh",
    "sinh",
    "cosh",
    "asin",
    "acos",
    "atan",
    "asinh",
    "acosh",
    "atanh",
    "erfc",
    "erfinv",
    "lgamma",
    "trunc",
]:
    FLOATS[_name] = f"libdevice.{_name}({{0}})"

INTEGERS = {
    "add": "{0} + {1}",
    "sub": "{0} - {1}",
    "mul": "{0} * {1}",
    "maximum": "tl.maximum({0}, {1})",
    "minimum": "tl.minimum({0}, {1})",
    "abs": "tl.abs({0})",
    "neg": "-{0}",
    "where": "tl.where({0}, {1}, {2})",
    "truncdiv": "{0} // {1}",
    "fmod": "{0} % {1}",
    "sign": "tl.where({0} > 0, 1, tl.where({0} < 0, -1, 0))",
    "invert": "~{0}",
    "shl": "{0} << {1}",
    "shr": "{0} >> {1}",
}
ANY = {
    "eq": "{0} == {1}",
    "ne": "{0} != {1}",
    "lt": "{0} < {1}",
    "le": "{0} <= {1}",
    "gt": "{0} > {1}",
    "ge": "{0} >= {1}",
    "and": "{0} & {1}",
    "or": "{0} | {1}",
    "xor": "{0} ^ {1}",
    "not": "~{0}",
}
INLINE = {"eq", "ne", "lt", "le", "gt", "ge", "cast", "neg", "not", "and", "or", "add", "sub", "mul"}


def compute_dtype(dtype: torch.dtype) -> torch.dtype:
    """The dtype of registers: halves are widened."""
    return torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype


@dataclass
class Space:
    """Where terms are evaluated: the text of each dimension's index, and the masks that apply there."""

    index: dict[int, str]
    mask: str = ""
    """Condition under which the element exists; empty: always."""
    level: str = "full"
    parts: list[Space] = field(default_factory=list)
    """Where reads that depend on fewer dimensions are evaluated: on a row's index alone, for one."""
    cache: dict[Any, str] = field(default_factory=dict)


@dataclass
class Arg:
    name: str
    host: Any
    """A value (pointer), a size, or a text."""
    kind: str  # pointer, size, static, number, constexpr


class Writer:
    """One kernel being written."""

    def __init__(self, table: Sizes, static: bool) -> None:
        self.table = table
        self.static = static
        self.args: list[Arg] = []
        self.names: set[str] = {"tl", "triton", "libdevice"}
        self.pointers: dict[int, str] = {}
        self.symbols: dict[sympy.Symbol, str] = {}
        self.hoisted: dict[str, str] = {}
        self.head: list[str] = []
        self.lines: list[str] = []
        self.indent = 1
        self.libdevice = False
        self.allocator = False
        self.in_group: Any = lambda value: None
        self.row_level: Any = lambda value: False
        """Whether a value is a result of rows that this kernel has at hand, one for all elements of a row."""
        self.count: dict[int, int] = {}
        self.roles: dict[int, str] = {}
        self.helpers: set[str] = set()

    # names and arguments ------------------------------------------------------------------------------------------

    def name(self, wish: str) -> str:
        """A free name in the kernel."""
        wish = re.sub(r"\W", "_", wish) or "value"
        wish = re.sub(r"_\d+$", "", wish)
        if wish in PYTHON_NAMES:
            wish += "_"
        free, n = wish, 2
        while free in self.names:
            free, n = f"{wish}_{n}", n + 1
        self.names.add(free)
        return free

    def pointer(self, value: Value) -> str:
        """The pointer argument of a value."""
        if id(value) not in self.pointers:
            base = self.roles.get(id(value)) or re.sub(r"_\d+$", "", value.name)
            name = self.name(base + "_ptr")
            self.pointers[id(value)] = name
            self.args.append(Arg(name, value, "pointer"))
        return self.pointers[id(value)]

    def number(self, host: str) -> str:
        """A scalar argument that host code knows."""
        if host.startswith("size:"):
            return self.size(sympy.sympify(host[5:], locals={s.name: s for s in self.table.values}))
        for arg in self.args:
            if arg.kind == "number" and arg.host == host:
                return arg.name
        name = self.name("scale" if "**" in host or "/" in host else re.sub(r"\W", "_", host.split(".")[-1]))
        self.args.append(Arg(name, host, "number"))
        return name

    def constexpr(self, name: str, host: str) -> str:
        name = self.name(name)
        self.args.append(Arg(name, host, "constexpr"))
        return name

    def symbol(self, symbol: sympy.Symbol) -> str:
        if symbol not in self.symbols:
            name = self.name(symbol.name)
            self.symbols[symbol] = name
            self.args.append(Arg(name, symbol, "static" if self.static else "size"))
            sizes.ORDER.setdefault(name, sizes.ORDER.get(symbol.name, 0))
        return self.symbols[symbol]

    def size(self, size: Size | int) -> str:
        """A size as text in the kernel; what is not one name or number is computed once at the top."""
        size = sympy.expand(sympy.sympify(size))
        if size.is_Integer or size.is_Symbol:
            return str(size) if size.is_Integer else self.symbol(size)
        shown = self.formula(sympy.factor(size) if not size.has(sizes.FloorDiv) else size)
        if shown not in self.hoisted:
            name = self.name(self.size_name(size))
            self.hoisted[shown] = name
            self.head.append(f"{name}: tl.constexpr = {shown}" if self.static else f"{name} = {shown}")
        return self.hoisted[shown]

    def formula(self, size: Size) -> str:
        local = {
            s: sympy.Symbol(self.symbol(s), integer=True, positive=True)
            for s in sorted(size.free_symbols, key=lambda s: (sizes.ORDER.get(s.name, 0), s.name))
        }
        return sizes.text(size.xreplace(local))

    def size_name(self, size: Size) -> str:
        names = sorted(s.name for s in size.free_symbols)
        base = [re.sub(r"_\d+$", "", n) for n in names]
        if base == ["height", "width"]:
            return "pixels"
        if len(base) == 1:
            return f"{base[0]}_part" if not size.is_polynomial() or size.has(sizes.FloorDiv) else f"{base[0]}_span"
        return "_".join(b.replace("kernel_", "k")[:8] for b in base[:3]) if len(base) <= 3 else "extent"

    # lines --------------------------------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        self.lines.append("    " * self.indent + text if text else "")

    @contextmanager
    def block(self, head: str) -> Any:
        self.line(head)
        self.indent += 1
        yield
        self.indent -= 1

    def assign(self, wish: str, text: str) -> str:
        if re.fullmatch(r"[A-Za-z_]\w*", text):
            return text
        name = self.name(wish)
        self.line(f"{name} = {text}")
        return name

    # forms --------------------------------------------------------------------------------------------------------

    def lin(self, lin: Lin, index: dict[int, str]) -> str:
        """A linear form over dimensions as text."""
        parts: list[str] = []
        for dim in sorted(lin.terms):
            coefficient, text = lin.terms[dim], index[dim]
            if coefficient == 0 or text == "0":
                continue
            if coefficient == 1:
                parts.append(text)
            elif coefficient == -1:
                parts.append(f"-{text}")
            else:
                parts.append(f"{text} * {self.size(coefficient)}")
        result = " + ".join(parts)
        if lin.const != 0:
            values = self.table.of(lin.const)
            if all(v <= 0 for v in values) and any(values):
                result = f"{result} - {self.size(-lin.const)}" if result else f"-{self.size(-lin.const)}"
            else:
                result = f"{result} + {self.size(lin.const)}" if result else self.size(lin.const)
        return result.replace("+ -", "- ") or "0"

    # terms --------------------------------------------------------------------------------------------------------

    def counts(self, terms: list[Term]) -> None:
        """How often each term is used, for the choice between a line of its own and a part of another."""
        for term in terms:
            stack = [term]
            seen: set[int] = set()
            self.count[id(term)] = self.count.get(id(term), 0) + 1
            while stack:
                at = stack.pop()
                if id(at) in seen:
                    continue
                seen.add(id(at))
                for child in children(at):
                    self.count[id(child)] = self.count.get(id(child), 0) + 1
                    stack.append(child)

    def term(self, term: Term, space: Space, other: str | None = None) -> str:
        """Writes what a term needs and gives the name of its value, or a short text."""
        key = id(term)
        if key in space.cache:
            return space.cache[key]
        if isinstance(term, Const):
            text = self.constant(term)
        elif isinstance(term, Read):
            text = self.read(term, space, other)
        elif isinstance(term, Gather):
            text = self.gathered(term, space)
        elif isinstance(term, Random):
            index = self.term(term.index, space)
            text = self.assign("uniform", f"tl.rand({self.number(term.seed)}, {index})")
        else:
            text = self.operation(term, space)
        space.cache[key] = text
        return text

    def constant(self, term: Const) -> str:
        number = term.number
        if isinstance(number, HostNumber):
            return self.number(number.text)
        if isinstance(number, sympy.Expr):
            return self.size(number)
        if isinstance(number, tuple):  # ("rsqrt", size): the usual scale of attention scores
            values = self.table.of(number[1])
            if len(set(values)) == 1:
                return repr(1.0 / math.sqrt(values[0]))
            host = f"{sizes.atomic(number[1])} ** -0.5"
            for arg in self.args:
                if arg.kind == "number" and arg.host == host:
                    return arg.name
            name = self.name("scale")
            self.args.append(Arg(name, host, "number"))
            return name
        if isinstance(number, bool) or term.dtype == torch.bool:
            return "True" if number else "False"
        if term.dtype.is_floating_point:
            number = float(number)
            if math.isinf(number) or math.isnan(number):
                return f'float("{number}")'
            return repr(number)
        return repr(int(number))

    def operation(self, term: Op, space: Space) -> str:
        dtype = compute_dtype(term.dtype)
        if term.op == "cast":
            return self.cast(term, space)
        if term.op == "rounded":
            text = self.term(term.args[0], space)
            text = text if simple(text) else f"({text})"
            return self.keep(term, f"{text}.to({TL[term.dtype]}).to(tl.float32)", space)
        texts = [self.term(a, space) for a in term.args]
        if term.op in ("floordiv", "floormod"):
            template = self.floor_division(term)
        else:
            table = FLOATS if dtype.is_floating_point else INTEGERS
            template = table.get(term.op) or ANY.get(term.op)
        if template is None:
            raise Unsupported(f"no Triton code for {term.op} of {term.dtype}")
        texts = [self.fit(t, a, term) for t, a in zip(texts, term.args, strict=True)]
        if template.startswith("libdevice") or "libdevice" in template:
            self.libdevice = True
            texts = [self.as_tensor(t, a, space, dtype) for t, a in zip(texts, term.args, strict=True)]
        binary = not template.startswith(("tl.", "libdevice"))
        if binary or term.op == "sign":
            texts = [t if simple(t) else f"({t})" for t in texts]
        text = template.format(*texts)
        return self.keep(term, text, space)

    def floor_division(self, term: Op) -> str:
        """Triton divides towards zero, Python downwards: equal unless the numerator may be negative."""
        if any(isinstance(r.view.value, Value) and r.view.value.origin != "iota" for r in ir.reads(term)):
            self.helpers.add("floor_div" if term.op == "floordiv" else "floor_mod")
            return f"{'floor_div' if term.op == 'floordiv' else 'floor_mod'}({{0}}, {{1}})"
        return "{0} // {1}" if term.op == "floordiv" else "({0} % {1} + {1}) % {1}"

    def fit(self, text: str, arg: Term, term: Op) -> str:
        """An integer or bool among floats is converted; Triton would otherwise compute in half precision at times."""
        want, have = compute_dtype(term.dtype), compute_dtype(arg.dtype)
        if term.op in ANY and term.op not in ("and", "or", "xor", "not"):
            dtypes = {compute_dtype(a.dtype) for a in term.args}
            want = torch.float32 if torch.float32 in dtypes else have
        if (term.op == "where" and arg is term.args[0]) or isinstance(arg, Const):
            return text
        if (want.is_floating_point and not have.is_floating_point) or (want == torch.float64 and have == torch.float32):
            return f"{text if simple(text) else f'({text})'}.to({TL[want]})"
        return text

    def as_tensor(self, text: str, arg: Term, space: Space, dtype: torch.dtype) -> str:
        """libdevice takes no Python numbers."""
        if isinstance(arg, Const):
            return f"tl.full((), {text}, {TL[dtype]})"
        return text

    def cast(self, term: Op, space: Space) -> str:
        text = self.term(term.args[0], space)
        have, want = compute_dtype(term.args[0].dtype), compute_dtype(term.dtype)
        if have == want or isinstance(term.args[0], Const):
            return text
        if want == torch.bool:
            return self.keep(term, f"{text if simple(text) else f'({text})'} != 0", space)
        return self.keep(term, f"{text if simple(text) else f'({text})'}.to({TL[want]})", space)

    def keep(self, term: Term, text: str, space: Space) -> str:
        """A line of its own, or the text itself where it is short and used once."""
        if isinstance(term, Op) and term.op in INLINE and self.count.get(id(term), 1) == 1 and len(text) <= 28:
            return text
        if text in space.cache:
            return space.cache[text]
        name = self.assign(term.name or "value", text)
        space.cache[text] = name
        return name

    def read(self, term: Read, space: Space, other: str | None = None) -> str:
        view = term.view
        made = self.in_group(view.value)
        if made is not None and not view.guards:
            return made(self, term, space)
        lin = self.place(view.offset() if view.value.origin != "iota" else view.index[0], view, space)
        if not view.guards and view.value.origin != "iota":
            part = next((p for p in space.parts if all(k in p.index for k in lin.terms)), None)
            if part is not None:
                space, other = part, None
        if view.value.origin == "iota":
            text = self.lin(lin, space.index)
            if re.fullmatch(r"\w+", text):
                return text
            return self.remember(text, "index", space)
        offset = self.lin(lin, space.index)
        masks = [space.mask] if space.mask else []
        guarded: set[Any] = set()
        for guard in view.guards:
            at = self.place(guard.lin, view, space)
            guarded |= set(at.terms)
            place = self.lin(at, space.index)
            if not re.fullmatch(r"\w+", place):
                place = self.remember(place, "at", space)
            inside = f"({place} < {self.size(guard.high)})"
            masks.append(f"({place} >= 0) & {inside}" if guard.low else inside)
        if guarded - {k for k, c in lin.terms.items() if c != 0}:
            # The mask has more dimensions than the address: addresses are repeated to its shape.
            offset = f"{offset} + {self.zeros(space)}"
        if not view.guards and not any(lin.terms.values()) and view.value.origin != "iota":
            masks = []  # one element for all lanes
        fill = other if not view.guards else literal(view.fill, view.value.dtype)
        return self.load(view.value, offset, masks, fill, term.name or view.value.name, space)

    def zeros(self, space: Space) -> str:
        """Zeros of the shape of a space's mask."""
        return f"{space.mask}.to(tl.int32) * 0" if space.mask else "0"

    def remember(self, text: str, wish: str, space: Space) -> str:
        key = ("text", text)
        if key not in space.cache:
            space.cache[key] = self.assign(wish, text)
        return space.cache[key]

    def load(self, value: Value, offset: str, masks: list[str], fill: str | None, name: str, space: Space) -> str:
        """A load, widened to the registers' dtype. Equal loads of one space are one."""
        pointer = self.pointer(value)
        # Padding has a value of its own; what a mask of the kernel leaves out has none.
        key = ("load", pointer, offset, tuple(masks), fill if len(masks) > 1 else None)
        if key in space.cache:
            return space.cache[key]
        where = pointer if offset == "0" else f"{pointer} + {offset}"
        text = f"tl.load({where})"
        if masks and offset != "0":
            masks = [space.mask, *masks[1:]] if space.mask and masks[0] == space.mask else masks
            text = f"tl.load({where}, mask={' & '.join(masks)}, other={fill or literal(0, value.dtype)})"
        if value.dtype in (torch.float16, torch.bfloat16):
            text += ".to(tl.float32)"
        result = self.assign(name, text)
        space.cache[key] = result
        return result

    def gathered(self, term: Gather, space: Space) -> str:
        parts = []
        for index, stride in zip(term.index, ir.strides_of(term.shape), strict=True):
            text = self.term(index, space)
            if text == "0":
                continue
            wide = text if simple(text) else f"({text})"
            parts.append(wide if stride == 1 else f"{wide} * {self.size(stride)}")
        found = self.dims_of(term.index, space)
        if found is not None:  # one element for all of a row takes no mask of many
            of_rows = (part for part in space.parts if part.level == "row" and found[0] <= set(part.index))
            space = next(of_rows, space)
        one = found is not None and not found[0] and (space.level == "full" or not found[1])
        masks = [space.mask] if space.mask and not one else []
        return self.load(term.value, " + ".join(parts) or "0", masks, None, term.name or term.value.name, space)

    def dims_of(self, terms: Sequence[Term], space: Space) -> tuple[set[Any], bool] | None:
        """The dimensions along which terms differ, and whether rows' results are among them; None where that is not
        told by what they read."""
        dims: set[Any] = set()
        rows = False
        for read in (read for term in terms for read in ir.reads(term)):
            view = read.view
            if self.row_level(view.value):
                rows = True
                continue
            if view.guards or self.in_group(view.value) is not None:
                return None
            lin = self.place(view.offset() if view.value.origin != "iota" else view.index[0], view, space)
            dims |= {key for key, step in lin.terms.items() if step != 0}
        return dims, rows

    place: Any

    # the whole ----------------------------------------------------------------------------------------------------

    def text(self, name: str, doc: str) -> str:
        order = {"pointer": 0, "number": 1, "size": 2, "static": 3, "constexpr": 4}
        self.args.sort(key=lambda a: order[a.kind])
        params = [a.name + (": tl.constexpr" if a.kind in ("static", "constexpr") else "") for a in self.args]
        head = f"def {name}({', '.join(params)}):"
        if len(head) > 118:
            head = f"def {name}(\n    " + ",\n    ".join(params) + ",\n):"
        body = [f'    """{doc}"""'] + ["    " + h for h in self.head] + self.lines
        return "@triton.jit\n" + head + "\n" + "\n".join(body)


PYTHON_NAMES = {
    "and",
    "or",
    "not",
    "in",
    "is",
    "if",
    "else",
    "for",
    "while",
    "def",
    "class",
    "return",
    "lambda",
    "None",
    "True",
    "False",
    "max",
    "min",
    "sum",
    "abs",
    "range",
    "input",
    "any",
    "all",
    "index_ptr",
    "view",
    "pass",
    "pow",
    "round",
    "float",
    "int",
    "slice",
    "type",
    "len",
    "id",
    "map",
    "as",
    "from",
    "import",
    "with",
    "try",
    "self",
    "global",
    "del",
    "assert",
    "raise",
    "yield",
    "float_",
    "tl",
    "torch",
    "triton",
    "floor_div",
    "floor_mod",
    "multiply",
}


def simple(text: str) -> bool:
    """Whether a text can stand in any expression without parentheses."""
    if re.fullmatch(r"[\w.]+|\d[\d.]*e-\d+", text):
        return True
    match = re.match(r"[\w.]+\(", text)
    return bool(match) and closes_at_end(text, match.end() - 1)


def closes_at_end(text: str, start: int) -> bool:
    depth = 0
    for i in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[i], 0)
        if depth == 0:
            return i == len(text) - 1
    return False


def literal(number: Any, dtype: torch.dtype) -> str:
    """A number as `other` of a load."""
    if dtype == torch.bool:
        return "False" if not number else "True"
    if dtype.is_floating_point:
        return f'float("{float(number)}")' if math.isinf(number) else repr(float(number))
    return repr(int(number))


def atoms_to_dims(view_axes: list[list[ir.Atom]], dims: list[tuple[int, Size]], table: Sizes) -> dict[ir.Atom, Lin]:
    """Each atom of an index space as a linear form over dimensions `(key, extent)`, both outer to inner."""
    result: dict[ir.Atom, Lin] = {}
    rest = list(dims)
    for atom in reversed([a for axis in view_axes for a in axis]):
        lin, step = Lin(), ir.ONE
        while not table.same(step, atom.size):
            key, size = rest.pop()
            lin = lin.plus(Lin({key: step}))
            step = step * size
        result[atom] = lin
    return result


def placed(lin: Lin, atoms: dict[ir.Atom, Lin]) -> Lin:
    """A form over atoms as one over dimensions."""
    result = Lin({}, lin.const)
    for atom, coefficient in lin.terms.items():
        result = result.plus(atoms[atom].scaled(coefficient))
    return result


__all__ = ["View"]
