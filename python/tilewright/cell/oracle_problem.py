"""Loading of KernelBench-format problem files.

A problem defines `Model`, `get_inputs()` and usually `get_init_inputs()`, which gives the constructor's arguments as
a list, as `[[args], {kwargs}]`, or as a dict of keyword arguments. Three optional names widen it:

- `CASES`: a list of dicts. Each reassigns module-level names, such as `{"ROWS": 1, "COLS": 7}`, before `get_inputs`
  and `get_init_inputs` are called; the key `name` labels the case.
- `TRAINING = False` puts the module into evaluation mode. Modules are in training mode otherwise, as in KernelBench.
- `GRADIENTS = True`, or a tuple of names, asks for gradients too: see `gradients`.
"""

from __future__ import annotations

import linecache
import sys
import traceback
import types
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.nn.parameter import UninitializedTensorMixin

from tilewright.cell import gradients

MAX_SOURCE = 4 << 20
"""Bytes of a problem file; larger ones are no problem files."""


class ProblemError(Exception):
    """The problem file cannot be used. `kind` is that of the error document, `line` a line of the file."""

    def __init__(self, kind: str, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.line = line


@dataclass
class Case:
    """One variant of a problem: its own instance of the problem's module."""

    label: str
    path: str
    module: types.ModuleType
    init_args: list[Any]
    init_kwargs: dict[str, Any]
    device: str = "cpu"
    """Where `get_inputs` makes tensors that it gives no device."""
    counters: frozenset[str] = frozenset()
    """Names of the state's counters, once it is known that the reference works wherever they start."""
    fixed: list[tuple[str, bool]] = field(default_factory=list)
    """The weights that the constructor writes as fixed numbers, as `constants.Watch` has them."""
    loose: frozenset[str] = frozenset()
    """Names of parameters that say too little as they are: fixed numbers, and copies of others."""
    gradients: gradients.Spec | None = None
    """What a call gives besides outputs, if the problem asks for gradients; inputs have cotangents then."""
    cotangents: list[gradients.Like] = field(default_factory=list)

    @property
    def training(self) -> bool:
        return bool(getattr(self.module, "TRAINING", True))

    def build(self) -> torch.nn.Module:
        """A fresh `Model`, in its mode, whose calls give gradients if the problem asks for them. What it raises is the
        problem's own exception."""
        return gradients.attach(self._plain(), self.gradients)

    def _plain(self) -> torch.nn.Module:
        model = self.module.Model(*self.init_args, **self.init_kwargs)
        if not isinstance(model, torch.nn.Module):
            raise ProblemError("problem", f"{self.path}: Model is not a torch.nn.Module")
        if any(isinstance(tensor, UninitializedTensorMixin) for tensor in (*model.parameters(), *model.buffers())):
            self._materialise(model)
        return model.train(self.training)

    def _materialise(self, model: torch.nn.Module) -> None:
        """Let lazy modules find their sizes: one call, on inputs that take nothing from the weights' generator."""
        state = torch.get_rng_state()
        args = self._given()
        torch.set_rng_state(state)
        with torch.no_grad():
            model(*args)

    def inputs(self) -> list[Any]:
        """Fresh arguments of a call: those of `forward`, and a list of cotangents if the problem asks for gradients."""
        values = self._given()
        return values if self.gradients is None else [*values, gradients.draw(self.cotangents)]

    def find_gradients(self) -> None:
        """If the problem asks for gradients, find out which there are, and what cotangents are like: on fake tensors,
        or else by a call. Raises `NotDifferentiable`, or what the problem raises."""
        from torch._subclasses.fake_tensor import FakeTensorMode

        if (wanted := gradients.declared(self.module)) is None:
            return
        try:
            with FakeTensorMode(allow_non_fake_inputs=True):
                found = gradients.resolve(wanted, self._plain(), self._given())
        except Exception:
            # A module that reads data, say: what is wrong, if anything is, shows in a call.
            found = gradients.resolve(wanted, self._plain(), self._given())
        self.gradients, self.cotangents = found

    def _given(self) -> list[Any]:
        values = self.module.get_inputs()
        if isinstance(values, torch.Tensor):
            return [values]
        if not isinstance(values, (list, tuple)):
            raise ProblemError("problem", f"{self.path}: get_inputs returns {type(values).__name__}, not a list")
        return list(values)


def read_source(path: str) -> str:
    """Text of a problem file. Raises `ProblemError` with file and line for what is no Python file."""
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_SOURCE + 1)
    except OSError as error:
        raise ProblemError("problem", f"failed to read {path}: {error.strerror}") from error
    if len(data) > MAX_SOURCE:
        raise ProblemError("problem", f"{path} is larger than {MAX_SOURCE} bytes")
    if not data.strip():
        raise ProblemError("problem", f"{path} is empty")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ProblemError("problem", f"{path}:{line}: not UTF-8 text", line) from error
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        raise ProblemError("problem", f"{path}:{line}: a binary file, not Python", line)
    return text


def load(path: str, source: str, changes: dict[str, Any] | None = None) -> types.ModuleType:
    """Execute the problem's file as a fresh module, then reassign the names in `changes`."""
    try:
        code = compile(source, path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        reason = getattr(error, "msg", None) or str(error)
        raise ProblemError("problem", f"{path}:{line}: {reason}", line) from error
    linecache.cache[path] = (len(source), None, source.splitlines(keepends=True), path)
    module = types.ModuleType("problem")
    module.__file__ = path
    sys.modules["problem"] = module
    try:
        exec(code, module.__dict__)
    except (Exception, SystemExit) as error:
        raise ProblemError("problem", describe(error, path), line_of(error, path)) from error
    if changes is None:
        _require(module, path)
    for name, value in (changes or {}).items():
        if not hasattr(module, name):
            raise ProblemError("problem", f"{path}: CASES reassigns {name}, which the problem does not define")
        setattr(module, name, value)
    return module


def _require(module: types.ModuleType, path: str) -> None:
    for name in ("Model", "get_inputs"):
        if not callable(getattr(module, name, None)):
            raise ProblemError("problem", f"{path} does not define {name}")


def make_case(path: str, module: types.ModuleType, label: str) -> Case:
    """Ask for the constructor's arguments once, so that every trial builds the same module. What the problem says about
    gradients is not looked at: see `Case.find_gradients`."""
    given = module.get_init_inputs() if hasattr(module, "get_init_inputs") else []
    if isinstance(given, dict):
        args, kwargs = [], dict(given)
    elif not isinstance(given, (list, tuple)):
        raise ProblemError("problem", f"{path}: get_init_inputs returns {type(given).__name__}, not a list")
    elif len(given) == 2 and isinstance(given[0], (list, tuple)) and isinstance(given[1], dict):
        args, kwargs = list(given[0]), dict(given[1])
    else:
        args, kwargs = list(given), {}
    return Case(label, path, module, args, kwargs)


def variants(module: types.ModuleType, path: str) -> list[tuple[str, dict[str, Any]]]:
    """Label and reassigned names of each entry of `CASES`."""
    entries = getattr(module, "CASES", [])
    if not isinstance(entries, (list, tuple)) or not all(isinstance(entry, dict) for entry in entries):
        raise ProblemError("problem", f"{path}: CASES is not a list of dicts")
    found: dict[str, dict[str, Any]] = {}
    for entry in entries:
        changes = {key: value for key, value in entry.items() if key != "name"}
        label = str(entry.get("name") or ",".join(f"{key}={value}" for key, value in changes.items()) or "default")
        while label in found or label == "default":
            label += "'"
        found[label] = changes
    return list(found.items())


def line_of(error: BaseException, path: str) -> int | None:
    """The innermost line of the problem's file in an exception's traceback."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    return lines[-1] if lines else None


def describe(error: BaseException, path: str) -> str:
    """An exception with file and line, in one line."""
    line = line_of(error, path)
    place = f"{path}:{line}" if line else path
    text = " ".join(str(error).split())
    return f"{place}: {type(error).__name__}: {text[:1000]}"
