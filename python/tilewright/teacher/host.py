"""The file: kernels, helper functions, and `ModelNew` with the reference's constructor and the launches."""

from __future__ import annotations

import ast
import builtins
import keyword
import re
from typing import Any

import sympy
import torch
from torch.utils import _pytree as pytree

from tilewright.teacher import sizes
from tilewright.teacher.capture import Problem
from tilewright.teacher.ir import Value
from tilewright.teacher.launch import Launch
from tilewright.teacher.lower import Lowering
from tilewright.teacher.sizes import Unsupported

HELPERS = {
    "multiply": '@triton.jit\ndef multiply(a, b):\n    """Combines two factors."""\n    return a * b',
    "larger": (
        '@triton.jit\ndef larger(a, b):\n    """The larger one; NaN if either is."""\n'
        "    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)"
    ),
    "smaller": (
        '@triton.jit\ndef smaller(a, b):\n    """The smaller one; NaN if either is."""\n'
        "    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)"
    ),
    "floor_div": (
        '@triton.jit\ndef floor_div(a, b):\n    """a // b rounded downwards; Triton rounds towards zero."""\n'
        "    quotient = a // b\n    return tl.where((a % b != 0) & ((a < 0) != (b < 0)), quotient - 1, quotient)"
    ),
    "floor_mod": (
        '@triton.jit\ndef floor_mod(a, b):\n    """a % b with the sign of b, as in Python."""\n'
        "    rest = a % b\n    return tl.where((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest)"
    ),
    "log_add": (
        '@triton.jit\ndef log_add(a, b):\n    """log(exp(a) + exp(b)); equal infinities stay what they are."""\n'
        "    gap = tl.where(a == b, 0.0, -tl.abs(a - b))\n"
        "    return tl.maximum(a, b) + libdevice.log1p(tl.exp(gap))"
    ),
    "later_max": (
        "@triton.jit\ndef later_max(best, at, value, here):\n"
        '    """The larger one, or NaN, and its place; the later of equal ones."""\n'
        "    take = (value >= best) | (value != value)\n"
        "    return tl.where(take, value, best), tl.where(take, here, at)"
    ),
    "later_min": (
        "@triton.jit\ndef later_min(best, at, value, here):\n"
        '    """The smaller one, or NaN, and its place; the later of equal ones."""\n'
        "    take = (value <= best) | (value != value)\n"
        "    return tl.where(take, value, best), tl.where(take, here, at)"
    ),
}


ALLOCATOR = '''def allocate(size, alignment, stream):
    """Memory for the tensor descriptors that kernels make."""
    return torch.empty(size, dtype=torch.int8, device="cuda")


triton.set_allocator(allocate)'''


class HostWriter:
    """Collects kernels and the lines of `forward`."""

    def __init__(self, lowering: Lowering) -> None:
        self.lowering = lowering
        self.kernels: dict[str, str] = {}
        self.names: set[str] = set()
        self.lines: list[str] = []
        self.used: set[sympy.Symbol] = set()
        self.values: set[int] = set()
        self.helpers: set[str] = set()
        self.libdevice = False
        self.allocator = False
        self.variables: dict[int, str] = {}
        self.classes: list[str] = []
        """Further classes of the file, before `ModelNew`."""
        self.taken: set[str] = (
            {s.name for s in lowering.sizes.values}
            | set(lowering.problem.argument_names)
            | {"self", "torch", "triton", "tl", "nn", *lowering.seeds}
        )

    def kernel(self, launch: Launch) -> str:
        """The name of a kernel with this text; equal kernels are one."""
        if launch.body in self.kernels:
            return self.kernels[launch.body]
        base = re.sub(r"\W", "_", launch.label)[:48].strip("_") + "_kernel"
        name, n = base, 2
        while name in self.names:
            name, n = f"{base}_{n}", n + 1
        self.names.add(name)
        self.kernels[launch.body] = name
        return name

    def size(self, size: Any) -> str:
        self.used |= sympy.sympify(size).free_symbols
        return sizes.text(size)

    def variable(self, value: Value) -> str:
        """Host text of a tensor."""
        if value.into is not None:
            value = value.into
        if value.origin in ("input", "state"):
            self.values.add(id(value))
            return self.variables.get(id(value), value.host)
        if id(value) not in self.variables:
            base = value.name + "_" if keyword.iskeyword(value.name) or hasattr(builtins, value.name) else value.name
            name, n = base, 2
            while name in self.taken:
                name, n = f"{base}_{n}" if base[-1] != "_" else f"{base}{n}", n + 1
            self.taken.add(name)
            self.variables[id(value)] = name
        return self.variables[id(value)]

    def call(self, launch: Launch) -> None:
        """Allocations and the launch."""
        writer = launch.writer
        self.helpers |= writer.helpers
        self.libdevice |= writer.libdevice
        self.allocator |= writer.allocator
        for value in launch.allocations:
            self.allocate(value)
        for line in launch.setup:
            self.lines.append(line)
        name = self.kernel(launch)
        positional, keywords = [], []
        for arg in writer.args:
            if arg.kind == "pointer":
                positional.append(self.variable(arg.host))
            elif arg.kind == "size":
                positional.append(self.size(arg.host))
            elif arg.kind == "number":
                positional.append(arg.host)
                self.used_text(arg.host)
            elif arg.kind == "static":
                keywords.append(f"{arg.name}={self.size(arg.host)}")
            else:
                keywords.append(f"{arg.name}={arg.host}")
                self.used_text(arg.host)
        keywords += [f"{k}={v}" for k, v in launch.options.items()]
        self.used_text(launch.grid)
        indent = ""
        if launch.loop:
            self.lines.append(launch.loop)
            self.used_text(launch.loop)
            indent = "    "
        head = f"{indent}{name}[{launch.grid}]("
        one = head + ", ".join([*positional, *keywords]) + ")"
        if len(one) <= 110:
            self.lines.append(one)
        else:
            self.lines.append(head)
            self.lines += [indent + line for line in self.wrapped([*positional, *keywords])]
            self.lines.append(f"{indent})")

    def wrapped(self, parts: list[str]) -> list[str]:
        return ["    " + part + "," for part in parts]

    def used_text(self, text: str) -> None:
        words = set(re.findall(r"[A-Za-z_]\w*", str(text)))
        self.used |= {s for s in self.lowering.sizes.values if s.name in words}

    def allocate(self, value: Value) -> None:
        shape = ", ".join(self.size(s) for s in value.shape)
        shape = f"({shape},)" if len(value.shape) == 1 else f"({shape})"
        name = self.variable(value)
        self.lines.append(f"{name} = torch.empty({shape}, device=device, dtype={value.dtype})")

    # the file -----------------------------------------------------------------------------------------------------

    def branch(self, lowering: Lowering) -> HostWriter:
        """A writer of another path through `forward`, with the same kernels."""
        made = HostWriter(lowering)
        made.kernels, made.names, made.helpers = self.kernels, self.names, self.helpers
        return made

    def source(self, forward: list[str], doc: str) -> str:
        """The whole file."""
        problem = self.lowering.problem
        parts = [f'"""{doc}"""', "", *self.imports(), ""]
        for helper in sorted(self.helpers):
            parts += ["", HELPERS[helper], ""]
        for body, name in self.kernels.items():
            parts += ["", body.replace("{name}", name, 1), ""]
        if self.allocator:
            parts += ["", ALLOCATOR, ""]
        for text in self.classes:
            parts += ["", text, ""]
        parts += ["", model_source(problem, self.lowering, forward, "\n".join([*self.classes, *forward]))]
        return "\n".join(parts).rstrip() + "\n"

    def imports(self) -> list[str]:
        lines = ["import torch", "import torch.nn as nn"]
        lines += extra_imports(self.lowering.problem.source)
        lines += ["import triton", "import triton.language as tl"]
        if self.libdevice:
            lines.append("from triton.language.extra import libdevice")
        return lines

    def forward_lines(self, returned: str) -> list[str]:
        """The body of `forward`."""
        lowering = self.lowering
        self.used_text(returned)
        lines = []
        for value in lowering.inputs:
            if id(value) in self.values or any(self.uses_shape(s, value) for s in self.used):
                if value.host.isidentifier():
                    lines.append(f"{value.host} = {value.host}.contiguous()")
                else:
                    lines.append(f"{value.name} = {value.host}.contiguous()")
        if self.mutated_inputs():
            lines = [line for line in lines if line.split(" ")[0] not in self.mutated_inputs()]
        lines += self.shape_lines()
        if any("device=device" in line for line in self.lines):
            lines.append(f"device = {self.device()}")
        for seed in lowering.seeds:
            if any(re.search(rf"\b{seed}\b", line) for line in self.lines):
                lines.append(f"{seed} = int(torch.randint(2**31, (1,)).item())")
        return [*lines, *self.lines, f"return {returned}"]

    def mutated_inputs(self) -> set[str]:
        return {base.host for base, _ in self.lowering.mutated.values() if base.origin == "input"}

    def device(self) -> str:
        if self.lowering.inputs:
            return f"{self.input_name(self.lowering.inputs[0])}.device"
        value = next(iter(self.lowering.state.values()), None)
        if value is None:
            raise Unsupported("a module without tensors")
        return f"{value.host}.device"

    def input_name(self, value: Value) -> str:
        return value.host if value.host.isidentifier() else value.name

    def uses_shape(self, symbol: sympy.Symbol, value: Value) -> bool:
        return self.lowering.sizes.host[symbol].startswith(value.host + ".shape")

    def shape_lines(self) -> list[str]:
        """Sizes that the launches use, from the shapes of tensors."""
        table, lines = self.lowering.sizes, []
        grown = True
        while grown:
            needed = {s for u in self.used if u in table.formulas for s in table.formulas[u].free_symbols}
            grown = not needed <= self.used
            self.used |= needed
        done: set[sympy.Symbol] = set()
        for value in self.lowering.inputs:
            name = self.input_name(value)
            mine = {}
            for symbol in self.used:
                match = re.fullmatch(re.escape(value.host) + r"\.shape\[(\d+)\]", table.host[symbol])
                if match:
                    mine[int(match[1])] = symbol
            if not mine:
                continue
            done |= set(mine.values())
            if len(mine) == len(value.shape) and len(mine) > 1:
                names = ", ".join(mine[i].name for i in range(len(value.shape)))
                lines.append(f"{names} = {name}.shape")
            else:
                lines += [f"{mine[i].name} = {name}.shape[{i}]" for i in sorted(mine)]
        known = {s: at for at, s in enumerate(table.host)}
        rest = sorted((s for s in self.used if s not in done), key=lambda s: (sizes.ORDER.get(s.name, 0), known[s]))
        return lines + [f"{s.name} = {table.host[s]}" for s in rest if s.name != table.host[s]]


def result_text(lowering: Lowering, texts: list[str]) -> str:
    """The returned structure with tensors' texts in it."""
    leaves, tree = lowering.cases[0].returns
    queue = list(texts)
    filled = [queue.pop(0) if leaf is None else repr(leaf) for leaf in leaves]
    return structure(pytree.tree_unflatten([Text(t) for t in filled], tree))


class Text(str):
    """Text that stands for itself."""


def structure(value: Any) -> str:
    if isinstance(value, Text):
        return str(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k!r}: {structure(v)}" for k, v in value.items()) + "}"
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return "(" + ", ".join(structure(v) for v in value) + ",)"
    if isinstance(value, tuple):
        return "(" + ", ".join(structure(v) for v in value) + ("," if len(value) == 1 else "") + ")"
    if isinstance(value, list):
        return "[" + ", ".join(structure(v) for v in value) + "]"
    return repr(value)


# the module -------------------------------------------------------------------------------------------------------


def extra_imports(source: str) -> list[str]:
    """Imports of the problem that its constructors may need."""
    found = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            text = ast.unparse(node)
            if text in ("import torch", "import torch.nn as nn"):
                continue
            module = node.module if isinstance(node, ast.ImportFrom) else node.names[0].name
            if module and module.split(".")[0] in (
                "torch",
                "math",
                "typing",
                "collections",
                "functools",
                "itertools",
                "__future__",
            ):
                found.append((text, [(a.asname or a.name).split(".")[0] for a in node.names]))
    body = constructors_text(source)
    return [text for text, names in found if any(re.search(rf"\b{n}\b", body) for n in names)]


def constructors_text(source: str) -> str:
    return "\n".join(ast.unparse(node) for node in kept_definitions(ast.parse(source)))


def kept_definitions(tree: ast.Module) -> list[ast.stmt]:
    """Classes without their `forward`, functions and constants, as far as `Model.__init__` needs them."""
    named: dict[str, ast.stmt] = {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            named[node.name] = node
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for name in (n for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)):
                named[name.id] = node
    wanted: list[ast.stmt] = []
    seen: set[str] = set()

    def want(name: str) -> None:
        if (
            name in seen
            or name not in named
            or name in ("get_inputs", "get_init_inputs", "CASES", "CONTROLS", "GRADIENTS", "TRAINING")
        ):
            return
        seen.add(name)
        node = strip(named[name]) if isinstance(named[name], ast.ClassDef) else named[name]
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name) and inner.id != name:
                want(inner.id)
        if node not in wanted:
            wanted.append(node)

    want("Model")
    return list(dict.fromkeys(wanted))


def strip(node: ast.ClassDef) -> ast.ClassDef:
    """A class with its constructor and what the constructor calls of its own."""
    methods = {m.name: m for m in node.body if isinstance(m, ast.FunctionDef)}
    keep = {"__init__"} & set(methods)
    grown = True
    while grown:
        grown = False
        for name in list(keep):
            for inner in ast.walk(methods[name]):
                if isinstance(inner, ast.Attribute) and inner.attr in methods and inner.attr not in keep | {"forward"}:
                    keep.add(inner.attr)
                    grown = True
    body: list[ast.stmt] = []
    for statement in node.body:
        if isinstance(statement, ast.FunctionDef):
            if statement.name in keep:
                body.append(without_docstring(statement))
        elif not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):
            body.append(statement)
    made = ast.ClassDef(node.name, node.bases, node.keywords, body or [ast.Pass()], node.decorator_list)
    if hasattr(node, "type_params"):
        made.type_params = node.type_params
    return ast.fix_missing_locations(made)


def without_docstring(function: ast.FunctionDef) -> ast.FunctionDef:
    first = function.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        rest = function.body[1:] or [ast.Pass()]
        return ast.copy_location(
            ast.FunctionDef(function.name, function.args, rest, function.decorator_list, function.returns), function
        )
    return function


def model_source(problem: Problem, lowering: Lowering, forward: list[str], used: str) -> str:
    """`ModelNew` and the classes that its constructor needs; `used` is all text that asks for its attributes."""
    tree = ast.parse(problem.source)
    parts = []
    for node in kept_definitions(tree):
        if isinstance(node, ast.ClassDef) and node.name == "Model":
            parts.append(new_class(node, tree, lowering, forward, used))
        else:
            parts.append(ast.unparse(ast.fix_missing_locations(node)))
    return "\n\n\n".join(parts)


def new_class(node: ast.ClassDef, tree: ast.Module, lowering: Lowering, forward: list[str], used: str) -> str:
    original = next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "Model")
    signature = next((m for m in original.body if isinstance(m, ast.FunctionDef) and m.name == "forward"), None)
    names = lowering.problem.argument_names
    if signature is not None and signature.args.vararg is None:
        arguments = ast.unparse(signature.args)
    else:
        arguments = ", ".join(["self", *names])
    text = ast.unparse(ast.fix_missing_locations(node))
    text = re.sub(r"^class Model\b", "class ModelNew", text, count=1, flags=re.M)
    text = re.sub(r"super\(Model, self\)", "super()", text)
    lines = [line for line in text.splitlines() if line != "    pass"]
    lines += attribute_lines(node, lowering, used, lines)
    lines += ["", f"    def forward({arguments}):"]
    lines += ["        " + line for line in forward]
    return "\n".join(lines)


def attribute_lines(node: ast.ClassDef, lowering: Lowering, forward: str, lines: list[str]) -> list[str]:
    """Constructor arguments that `forward` asks for and the constructor does not keep."""
    text = "\n".join(lines)
    added = []
    for name in sorted(set(re.findall(r"self\.(\w+)", forward))):
        known = name in {k.split("[")[0] for k in lowering.cases[0].numbers_args}
        chosen = name.removesuffix("_chosen")
        if chosen != name and chosen in lowering.cases[0].numbers_args:
            added.append(f"        self.{name} = {chosen}")
        if known and not re.search(rf"self\.{name}\s*[=:]", text):
            added.append(f"        self.{name} = {name}")
    if added and not any(isinstance(m, ast.FunctionDef) and m.name == "__init__" for m in node.body):
        raise Unsupported("a constructor that is inherited")
    return added


DTYPES = {torch.float16: "half", torch.bfloat16: "bfloat16"}
