"""The candidate as a file: writing it where `inspect` finds it, importing it, and finding its lines."""

from __future__ import annotations

import ast
import importlib.util
import os
import sys
import types
from typing import Any

from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    UnsupportedFakeTensorException,
    UnsupportedOperatorException,
)

MODULE = "candidate"
NOT_LITERAL = object()


class Source:
    """The candidate's file in the scratch folder.

    `kernels` are the jit functions that the screen cut out: name and line of the `def` or of a decorator.
    """

    def __init__(self, text: str, scratch: str, kernels: list[dict[str, Any]]) -> None:
        self.text = text
        self.path = os.path.join(os.path.abspath(scratch), f"{MODULE}.py")
        with open(self.path, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        self.tree = ast.parse(text, self.path)
        self.code = compile(text, self.path, "exec", dont_inherit=True)
        self.kernels = {(k["name"], k["line"]) for k in kernels}
        self._bodies = self._kernel_bodies()
        self._known: dict[tuple[str, str], bool] = {}
        self._literals: dict[str, Any] = {}

    def _kernel_bodies(self) -> dict[str, set[str]]:
        """Each named kernel as the file has it, without decorators, comments and layout."""
        bodies: dict[str, set[str]] = {}
        for node in ast.walk(self.tree):
            if not isinstance(node, ast.FunctionDef):
                continue
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            if any((node.name, line) in self.kernels for line in range(first, node.lineno + 1)):
                bodies.setdefault(node.name, set()).add(_normal(node))
        return bodies

    def is_kernel(self, name: str, text: str) -> bool:
        """Whether a jit function of this name and source text is one of those that the screen cut out."""
        known = self._known.get((name, text))
        if known is None:
            known = self._known[name, text] = self._matches(name, text)
        return known

    def _matches(self, name: str, text: str) -> bool:
        try:
            (node,) = ast.parse(text).body
        except (SyntaxError, ValueError):
            return False
        return isinstance(node, ast.FunctionDef) and _normal(node) in self._bodies.get(name, ())

    def literal(self, name: str) -> Any:
        """Value of a global that the file assigns once, as a literal or a `constexpr` of one; else `NOT_LITERAL`."""
        if name not in self._literals:
            self._literals[name] = self._find_literal(name)
        return self._literals[name]

    def _find_literal(self, name: str) -> Any:
        values = []
        for node in self.tree.body:
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            if any(isinstance(target, ast.Name) and target.id == name for target in targets):
                values.append(getattr(node, "value", None))
        if len(values) != 1:
            return NOT_LITERAL
        value = values[0]
        if isinstance(value, ast.Call) and ast.unparse(value.func).endswith("constexpr") and len(value.args) == 1:
            value = value.args[0]
        try:
            return ast.literal_eval(value)
        except (ValueError, TypeError):
            return NOT_LITERAL

    def module(self, builtins: dict[str, Any]) -> types.ModuleType:
        """The file as a module named like any other, not run yet; its code finds these builtins."""
        spec = importlib.util.spec_from_file_location(MODULE, self.path)
        assert spec is not None
        module = importlib.util.module_from_spec(spec)
        module.__dict__["__builtins__"] = builtins
        sys.modules[MODULE] = module
        return module

    def run(self, module: types.ModuleType) -> None:
        """Runs the file's top level."""
        exec(self.code, module.__dict__)

    def line(self) -> int:
        """Line of the innermost frame inside the candidate; 0 outside it."""
        frame = sys._getframe(1)
        while frame is not None:
            if frame.f_code.co_filename == self.path:
                return frame.f_lineno
            frame = frame.f_back
        return 0

    def quote(self) -> str:
        """The current line's text, to end a message with; empty outside the candidate."""
        line = self.line()
        lines = self.text.splitlines()
        return f": `{lines[line - 1].strip()[:160]}`" if 0 < line <= len(lines) else ""

    def store_line(self, name: str) -> int:
        """Line of the first place where the file stores to an attribute, variable or item of this name; 0 if none."""
        for node in ast.walk(self.tree):
            if not isinstance(getattr(node, "ctx", None), ast.Store):
                continue
            if isinstance(node, ast.Subscript):
                node = node.value
            if getattr(node, "attr", getattr(node, "id", None)) == name:
                return node.lineno
        return 0

    def def_line(self, name: str) -> int:
        """Line of the first function or class of this name; 0 if there is none."""
        kinds = (ast.FunctionDef, ast.ClassDef)
        return next((n.lineno for n in ast.walk(self.tree) if isinstance(n, kinds) and n.name == name), 0)

    def stores(self) -> list[tuple[str, str]]:
        """Attributes that the file sets of something else than `self`: (the object's expression where that is a name
        with attributes, else an empty text; the attribute's name)."""
        found: set[tuple[str, str]] = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                found.add((_dotted(node.value), node.attr))
            elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "setattr" and len(node.args) == 3:
                found |= {(_dotted(node.args[0]), name) for name in self._names(node.args[1])}
            elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
                owner = node.value
                if isinstance(owner, ast.Attribute) and owner.attr == "__dict__":
                    found |= {(_dotted(owner.value), name) for name in self._names(node.slice)}
                elif isinstance(owner, ast.Call) and getattr(owner.func, "id", "") == "vars" and owner.args:
                    found |= {(_dotted(owner.args[0]), name) for name in self._names(node.slice)}
        return sorted(pair for pair in found if pair[0].partition(".")[0] != "self")[:100]

    def _names(self, node: ast.expr) -> set[str]:
        """The name that an expression gives; where it is no literal, every text in the file that could be one."""
        if isinstance(node, ast.Constant):
            return {str(node.value)}
        texts = (n.value for n in ast.walk(self.tree) if isinstance(n, ast.Constant) and isinstance(n.value, str))
        return {text for text in texts if text.isidentifier()}

    def error(self, kind: str, exception: BaseException) -> dict[str, Any]:
        """The exception as an error response; only frames of the candidate are shown."""
        line, frames = None, []
        trace = exception.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == self.path:
                line = trace.tb_lineno
                frames.append(f"line {line}, in {trace.tb_frame.f_code.co_name}")
            trace = trace.tb_next
        if isinstance(exception, SyntaxError) and exception.filename == self.path:
            line = exception.lineno
        return error(kind, exception, line, frames)


def _dotted(node: ast.expr) -> str:
    """A name with attributes as text; empty for any other expression."""
    if isinstance(node, ast.Attribute):
        owner = _dotted(node.value)
        return f"{owner}.{node.attr}" if owner else ""
    return node.id if isinstance(node, ast.Name) else ""


def _normal(node: ast.FunctionDef) -> str:
    """The function as text that depends on nothing but its meaning."""
    return ast.dump(ast.FunctionDef(**{**dict(ast.iter_fields(node)), "decorator_list": []}))


def failure_kind(exception: BaseException) -> str:
    """Kind of the error response: what fake tensors cannot do is not the candidate's fault."""
    if isinstance(exception, (UnsupportedOperatorException, UnsupportedFakeTensorException)):
        return "unsupported"
    if isinstance(exception, (DataDependentOutputException, DynamicOutputShapeException)):
        return "untraceable"
    return "exception"


def error(kind: str, exception: BaseException, line: int | None, frames: list[str] | None = None) -> dict[str, Any]:
    """An error response of the cell's protocol."""
    try:
        message = str(exception)
    except BaseException:
        message = "(its message cannot be printed)"
    return {
        "error": {
            "kind": kind,
            "type": type(exception).__name__,
            "message": message[:2000],
            "line": line,
            "traceback": "\n".join((frames or [])[-20:]),
        }
    }
