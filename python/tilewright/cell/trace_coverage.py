"""Calls that no trace reached: a trace proves only the lines that ran.

Host code reachable from `forward` may hold branches that this signature does not take (or that only real tensors would
take). A call there is harmless if it plainly cannot compute: it asks for shapes, allocates, copies, launches a kernel
of the file, or calls a function of the file that is harmless itself. Everything else is an unproven branch.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from .trace_ops import TABLE
from .trace_source import Source


def _words(text: str) -> set[str]:
    return set(text.split())


_BUILTINS = _words(
    """all any bool dict enumerate filter float format hasattr id int isinstance issubclass len list map max min next
    print range repr reversed set slice sorted str super tuple type zip ValueError TypeError RuntimeError
    AssertionError NotImplementedError Exception"""
)
# Methods and functions that move, allocate or describe; composite ones are not in the table of ops.
_HARMLESS = {name.rpartition("::")[2] for name, op in TABLE.items() if op.kind != "read"} | _words(
    """to cpu cuda float half double bfloat16 int long short type type_as reshape contiguous flatten ravel size stride
    numel dim ndimension nelement element_size data_ptr storage_offset is_contiguous is_floating_point get_device
    new_tensor new_empty broadcast_to broadcast_tensors movedim moveaxis swapaxes pad stack hstack vstack cdiv
    next_power_of_2 get append extend items keys values pop setdefault update format join split startswith warn
    tensor as_tensor finfo iinfo save_for_backward mark_non_differentiable mark_dirty set_materialize_grads
    is_available current_device get_device_properties get_device_capability synchronize current_stream from_tensor
    TensorDescriptor is_grad_enabled no_grad apply device_of device stream warmup bit_length manual_seed"""
)
_HARMLESS_MODULES = ("math.", "triton.", "warnings.", "logging.", "functools.", "itertools.", "operator.index")


class Coverage:
    """What a file's functions do on lines that did not run."""

    def __init__(self, source: Source, lines: set[int]) -> None:
        self._source, self._lines = source, lines
        self._kernels = {name for name, _ in source.kernels}
        self._functions = _functions(source.tree)
        self._aliases = _aliases(source.tree)
        self._seen: set[str] = set()

    def findings(self) -> list[dict[str, Any]]:
        """One finding for each unproven call."""
        found: dict[int, str] = {}
        for name, function in self._functions.items():
            if self._ran(function):
                for node in _suspects(function.body, self._lines):
                    self._check(name, node, found)
        return [
            {
                "rule": "unproven-branch",
                "tier": "evidence",
                "message": f"no trace reached `{text}`, and it may compute outside of a kernel",
                "line": line,
                "help": "Let forward take the same path for every input of this signature.",
            }
            for line, text in sorted(found.items())
        ]

    def _ran(self, function: ast.FunctionDef) -> bool:
        if function.name in self._kernels:
            return False
        return any(line in self._lines for line in range(function.body[0].lineno, (function.end_lineno or 0) + 1))

    def _check(self, owner: str, node: ast.AST, found: dict[int, str]) -> None:
        """Notes calls and matrix products below `node` that may compute."""
        for inner in ast.walk(node):
            product = isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.MatMult)
            if product or (isinstance(inner, ast.Call) and not self._harmless(inner, found)):
                found.setdefault(inner.lineno, ast.unparse(inner)[:120])

    def _harmless(self, call: ast.Call, found: dict[int, str]) -> bool:
        target = call.func
        if isinstance(target, ast.Subscript):  # kernel[grid](...)
            return self._harmless_name(ast.unparse(target.value), found, launch=True)
        if isinstance(target, ast.Call):  # a decorator or factory called in place
            return False
        return self._harmless_name(ast.unparse(target), found)

    def _harmless_name(self, text: str, found: dict[int, str], launch: bool = False) -> bool:
        head, _, rest = text.partition(".")
        full = f"{self._aliases.get(head, head)}.{rest}" if rest else self._aliases.get(head, head)
        last = full.rpartition(".")[2]
        if last in self._kernels:
            return True
        if last in self._functions:
            return self._follow(last, found)
        if launch:
            return False
        return full in _BUILTINS or full.startswith(_HARMLESS_MODULES) or last in _HARMLESS

    def _follow(self, name: str, found: dict[int, str]) -> bool:
        """A function of the file: what it does is looked at in its own place."""
        function = self._functions[name]
        if name not in self._seen and not self._ran(function):
            self._seen.add(name)
            for statement in function.body:
                for node in _expressions(statement):
                    self._check(name, node, found)
        return True


def _functions(tree: ast.Module) -> dict[str, ast.FunctionDef]:
    return {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def _aliases(tree: ast.Module) -> dict[str, str]:
    """Full names of what the file imports."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update({a.asname: a.name for a in node.names if a.asname})
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.update({a.asname or a.name: f"{node.module}.{a.name}" for a in node.names})
    return names


def _suspects(body: list[ast.stmt], lines: set[int]) -> Iterator[ast.AST]:
    """Expressions in a function that did not run, or of which it is not known."""
    for statement in body:
        blocks = _blocks(statement)
        first = blocks[0][0].lineno if blocks else (statement.end_lineno or statement.lineno) + 1
        header = range(statement.lineno, max(first, statement.lineno + 1))
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            continue  # looked at as functions of their own
        if not any(line in lines for line in header):
            yield from _expressions(statement)
            continue
        if not blocks:
            yield from _arms(statement)
        for block in blocks:
            if block[0].lineno == statement.lineno:  # `if a: b()` on one line
                for inner in block:
                    yield from _expressions(inner)
            else:
                yield from _suspects(block, lines)


def _blocks(statement: ast.stmt) -> list[list[ast.stmt]]:
    blocks = [getattr(statement, name, None) for name in ("body", "orelse", "finalbody")]
    handlers = [handler.body for handler in getattr(statement, "handlers", [])]
    return [block for block in [*blocks, *handlers] if isinstance(block, list) and block]


def _expressions(statement: ast.AST) -> Iterator[ast.AST]:
    """A statement that did not run, unless it only fails."""
    if isinstance(statement, (ast.Raise, ast.Assert, ast.FunctionDef, ast.ClassDef)):
        return
    blocks = _blocks(statement) if isinstance(statement, ast.stmt) else []
    if not blocks:
        yield statement
        return
    for name in ("test", "iter"):
        if isinstance(getattr(statement, name, None), ast.AST):
            yield getattr(statement, name)
    for block in blocks:
        for inner in block:
            yield from _expressions(inner)


def _arms(statement: ast.stmt) -> Iterator[ast.AST]:
    """Parts of a statement that ran of which only some may have run."""
    for node in ast.walk(statement):
        if isinstance(node, ast.IfExp):
            yield node.body
            yield node.orelse
        elif isinstance(node, ast.BoolOp):
            yield from node.values[1:]
