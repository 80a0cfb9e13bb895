"""Writes of `forward` to the module's and the file's own state, whether or not they have an effect here."""

from __future__ import annotations

import collections
import functools
import gc
import types
from typing import TYPE_CHECKING, Any

import torch
from triton.runtime import jit

from .trace_purity import finding
from .trace_record import storage_of
from .trace_source import MODULE
from .trace_torch import Event, Stream

if TYPE_CHECKING:
    from .trace import Session

_OPAQUE = (
    Stream,
    Event,
    jit.JITCallable,
    jit.KernelInterface,
    types.ModuleType,
    types.BuiltinFunctionType,
    torch.dtype,
    torch.device,
)
_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_MAX_NODES = 50_000


class Fingerprint:
    """The state that a module and the file's globals hold, object by object."""

    def __init__(self, module: Any, namespace: dict[str, Any]) -> None:
        self._module, self._namespace = module, namespace
        self._before = self._walk()

    def changes(self, session: Session) -> list[dict[str, Any]]:
        """What is no longer as it was, as findings."""
        after = self._walk()
        findings = []
        for path in sorted(self._before.keys() | after.keys()):
            if not _same(self._before.get(path), after.get(path)):
                name = path.rsplit(".", 1)[-1].split("[")[0]
                line = session.source.store_line(name)
                findings.append(finding(session, "hidden-state", f"forward changes {path}", line))
                if len(findings) >= 8:
                    break
        for name, value in list(self._namespace.items()):
            if isinstance(value, functools._lru_cache_wrapper) and _holds_tensor(value):
                line = session.source.store_line(name)
                findings.append(finding(session, "hidden-state", f"the cache of {name} keeps tensors", line))
        return findings

    def _walk(self) -> dict[str, tuple[Any, ...]]:
        found: dict[str, tuple[Any, ...]] = {}
        seen: set[int] = set()
        _visit(self._module, "self", found, seen, 0)
        for name, value in list(self._namespace.items()):
            if not name.startswith("__"):
                found[name] = _token(value)
                _visit(value, name, found, seen, 1)
        return found


def _token(value: Any) -> tuple[Any, ...]:
    if isinstance(value, _PLAIN):
        return ("plain", type(value), value)
    if isinstance(value, torch.Tensor):
        return ("tensor", value, storage_of(value)._cdata, tuple(value.shape), tuple(value.stride()))
    return ("object", value)


def _same(a: tuple[Any, ...] | None, b: tuple[Any, ...] | None) -> bool:
    if a is None or b is None or a[0] != b[0]:
        return False
    if a[0] == "plain":
        return a[1] is b[1] and (a[2] == b[2] or (a[2] != a[2] and b[2] != b[2]))
    return a[1] is b[1] and a[2:] == b[2:]


def _visit(value: Any, path: str, found: dict[str, tuple[Any, ...]], seen: set[int], depth: int) -> None:
    if (
        depth > 8
        or len(found) > _MAX_NODES
        or isinstance(value, (*_PLAIN, *_OPAQUE, torch.Tensor))
        or id(value) in seen
    ):
        return
    seen.add(id(value))
    for name, child in _children(value):
        place = f"{path}{name}"
        found[place] = _token(child)
        _visit(child, place, found, seen, depth + 1)


def _children(value: Any) -> list[tuple[str, Any]]:
    """Parts of an object that a file could keep state in."""
    if isinstance(value, dict):
        return [(f"[{_key(k)}]", v) for k, v in list(value.items())]
    if isinstance(value, (list, tuple)):
        return [(f"[{i}]", v) for i, v in enumerate(list(value))]
    if isinstance(value, (set, frozenset)):
        return [("[len]", len(value))]
    if isinstance(value, types.FunctionType):
        if value.__module__ != MODULE:
            return []
        cells = [
            (f".<{n}>", _cell(c)) for n, c in zip(value.__code__.co_freevars, value.__closure__ or (), strict=False)
        ]
        return [(f".{k}", v) for k, v in value.__dict__.items()] + cells + [(".__defaults__", value.__defaults__)]
    if isinstance(value, type):
        if value.__module__ != MODULE:
            return []
        return [
            (f".{k}", v) for k, v in list(value.__dict__.items()) if k not in ("__dict__", "__weakref__", "__doc__")
        ]
    if isinstance(value, types.MethodType):
        return [(".__self__", value.__self__), (".__func__", value.__func__)]
    if isinstance(value, functools.partial):
        return [(".func", value.func), (".args", value.args), (".keywords", value.keywords)]
    if isinstance(value, collections.deque):
        return [(f"[{i}]", v) for i, v in enumerate(list(value))]
    if type(value).__module__.split(".")[0] in ("torch", "triton") and not isinstance(value, torch.nn.Module):
        return []
    fields = getattr(value, "__dict__", None)
    if not isinstance(fields, dict):
        return []
    return [(f".{k}", v) for k, v in list(fields.items()) if not _is_cached(value, k, v)]


def _is_cached(owner: Any, name: str, value: Any) -> bool:
    """Whether the attribute is what a `functools.cached_property` remembers, and no tensor."""
    return isinstance(value, _PLAIN) and isinstance(getattr(type(owner), name, None), functools.cached_property)


def _key(key: Any) -> str:
    """A dictionary's key as text that is the same in every run."""
    if isinstance(key, tuple) and len(key) <= 8:
        return f"({', '.join(_key(k) for k in key)})"
    return repr(key)[:80] if isinstance(key, (*_PLAIN, torch.dtype, torch.device)) else type(key).__name__


def _cell(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _holds_tensor(wrapper: Any) -> bool:
    """Whether an lru_cache holds tensors as keys or values."""
    frontier, seen = [wrapper], {id(wrapper), id(wrapper.__wrapped__)}
    for _ in range(4):
        following = []
        for item in gc.get_referents(*frontier) if frontier else []:
            if isinstance(item, torch.Tensor):
                return True
            if id(item) not in seen and not isinstance(item, (types.FunctionType, type, types.ModuleType, str)):
                seen.add(id(item))
                following.append(item)
        frontier = following[:1000]
    return False
