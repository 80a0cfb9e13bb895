"""Keeps a traced file from the tracer's own objects, which share its process.

Functions that it can get hold of are sealed: they can be called, but their globals and closures cannot be followed.
The tracer's modules are out of reach while the file runs. Objects that it gets keep their state elsewhere, since it
could change their attributes.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from tilewright import _core

_PACKAGE = __name__.split(".")[0]
_OWN = __name__.rpartition(".")[0] + ".trace"


def sealed(function: Callable[..., Any], name: str | None = None) -> Any:
    """The function as one that cannot be looked into, under the name that it shows."""
    return _core.Sealed(function, name or function.__name__)


_held: dict[int, tuple[weakref.ref[Any], Any]] = {}


def hold(thing: Any, state: Any) -> None:
    """Keeps what an object that a file gets stands for, as long as the object lives."""
    key = id(thing)
    _held[key] = weakref.ref(thing, sealed(lambda _: _held.pop(key, None), "")), state


def held(thing: Any) -> Any:
    """What the object stands for. Raises `KeyError` for one of the file's own."""
    return _held[id(thing)][1]


@functools.cache
def seal_classes() -> None:
    """Seals the methods of all classes of the tracer, in this process and its children for good."""
    for name, module in list(sys.modules.items()):
        if name.startswith(_OWN):
            for value in list(vars(module).values()):
                if isinstance(value, type) and value.__module__ == name:
                    _seal_class(value)


def _seal_class(cls: type) -> None:
    for name, value in list(vars(cls).items()):
        if isinstance(value, types.FunctionType):
            setattr(cls, name, sealed(value))
        elif isinstance(value, (staticmethod, classmethod)) and isinstance(value.__func__, types.FunctionType):
            setattr(cls, name, type(value)(sealed(value.__func__)))
        elif isinstance(value, property):
            parts = (value.fget, value.fset, value.fdel)
            setattr(cls, name, property(*(part and sealed(part) for part in parts)))


@contextlib.contextmanager
def out_of_reach() -> Iterator[None]:
    """Takes this package and the main program out of `sys.modules` meanwhile; importing it again is an audit event."""
    names = [name for name in sys.modules if name.split(".")[0] == _PACKAGE] + ["__main__"]
    taken = {name: sys.modules.pop(name) for name in names if name in sys.modules}
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules.update(taken)
