"""Objects taken apart: where a file could keep state, and how to tell whether it is the same as before."""

from __future__ import annotations

import array
import collections
import contextlib
import contextvars
import functools
import gc
import io
import itertools
import random
import sys
import types
import warnings
import weakref
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils import hooks
from triton.runtime import jit
from triton.runtime.autotuner import Config

from .trace_record import storage_of
from .trace_source import MODULE
from .trace_torch import Event, Stream

Token = tuple[Any, ...]
"""A kind, and what is compared."""

PLAIN = (bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device, torch.Size, range, slice)
_OPAQUE = (Stream, Event, jit.JITCallable, jit.KernelInterface, types.ModuleType, types.CodeType, torch.Generator)
_BUFFERS = (bytearray, array.array, memoryview)
_ITERATORS = tuple(
    {
        *(value for value in vars(itertools).values() if isinstance(value, type) and hasattr(value, "__next__")),
        *(type(iter(value)) for value in ([], (), {}, {}.values(), {}.items(), set(), "", b"", range(0), bytearray())),
        *(type(reversed(value)) for value in ([], {})),
        *(enumerate, zip, map, filter, reversed),
    }
)
_MUTABLE = (list, dict, set, collections.deque, *_BUFFERS)
_OF_KERNELS = ("configs", "cache", "arg_names", "params", "values", "keys", "fn")
"""What a file may read or reach of its kernels and autotuners."""
_LARGEST = 1 << 22
"""Bytes of a buffer that are compared."""


def token(value: Any) -> Token:
    """What identifies the value, not looking inside: by content where that is plain, else by identity."""
    if isinstance(value, PLAIN):
        return ("plain", type(value), value)
    if isinstance(value, tuple) and all(token(item)[0] == "plain" for item in value):
        return ("plain", tuple, tuple((type(item), repr(item)) for item in value))
    if isinstance(value, torch.Tensor):
        return ("tensor", value, storage_of(value)._cdata, tuple(value.shape), tuple(value.stride()))
    if isinstance(value, _BUFFERS):
        with contextlib.suppress(Exception):
            return ("buffer", type(value), len(value), bytes(value[:_LARGEST]))
    if isinstance(value, _ITERATORS):
        return ("iterator", type(value))
    if type(value).__module__ == "numpy" and hasattr(value, "tobytes"):
        return ("array", type(value), str(getattr(value, "dtype", "")), value.tobytes()[:_LARGEST])
    if isinstance(value, (list, dict, set, collections.deque)):
        return ("object", "container", value)
    if _is_own(value) and not isinstance(value, (type, types.FunctionType, torch.nn.Module)):
        return ("object", "instance", value)
    if isinstance(value, (type, types.FunctionType, jit.KernelInterface)):
        return ("object", "code", value)
    return ("object", "other", value)


def same(a: Token | None, b: Token | None) -> bool:
    if not a or not b or a[0] != b[0]:
        return False
    if a[0] in ("object", "tensor"):
        return a[-1] is b[-1] if a[0] == "object" else a[1] is b[1] and a[2:] == b[2:]
    return a[1] is b[1] and (a[2:] == b[2:] or (a[2] != a[2] and b[2] != b[2]))


def parts(value: Any) -> list[tuple[str, Any]]:
    """What an object holds, each with how it reads behind the object's own name."""
    if isinstance(value, (torch.Tensor, *_OPAQUE)):
        return []
    found = list(_contents(value))
    found += _slots(value)
    fields = getattr(value, "__dict__", None)
    if isinstance(fields, dict) and not isinstance(value, type) and not _is_foreign(value):
        found += [(f".{k}", v) for k, v in list(fields.items()) if not _is_cached(value, k, v)]
    return found


def foreign_parts(value: Any) -> list[tuple[str, Any]]:
    """What an object of torch's or Triton's own classes holds besides: much of it moves for reasons of theirs, but not
    from one call to the next on the same inputs."""
    if isinstance(value, jit.KernelInterface):
        return [(f".{name}", getattr(value, name)) for name in _OF_KERNELS if hasattr(value, name)]
    if isinstance(value, (types.ModuleType, types.CodeType, types.FunctionType, type)) or not _is_foreign(value):
        return []
    with contextlib.suppress(Exception):
        fields = object.__getattribute__(value, "__dict__")
        return [(f".{k}", v) for k, v in list(fields.items()) if isinstance(v, (*PLAIN, *_MUTABLE, Config))]
    return []


def _contents(value: Any) -> Iterator[tuple[str, Any]]:
    """Parts that are not attributes."""
    if isinstance(value, (dict, types.MappingProxyType)):
        yield from ((f"[{_key(k)}]", v) for k, v in list(value.items()))
    elif isinstance(value, (list, tuple, collections.deque)):
        yield from ((f"[{i}]", v) for i, v in enumerate(list(value)))
    elif isinstance(value, (set, frozenset)):
        yield "[len]", len(value)
        yield from ((f"[{_key(v)}]", v) for v in list(value))
    elif isinstance(value, _ITERATORS):
        yield from _iterator(value)
    elif isinstance(value, types.FunctionType):
        yield from _function(value)
    elif isinstance(value, type):
        if value.__module__ == MODULE:
            own = [(f".{k}", v) for k, v in list(vars(value).items())]
            yield from (pair for pair in own if pair[0] not in (".__dict__", ".__weakref__", ".__doc__"))
    elif isinstance(value, (types.MethodType, types.BuiltinMethodType, types.MethodWrapperType)):
        if not isinstance(value.__self__, types.ModuleType):
            yield ".__self__", value.__self__
        if isinstance(value, types.MethodType):
            yield ".__func__", value.__func__
    elif isinstance(value, functools._lru_cache_wrapper):
        yield from _remembered(value)
    elif isinstance(value, functools.partial):
        yield from ((f".{k}", getattr(value, k)) for k in ("func", "args", "keywords"))
    elif isinstance(value, (staticmethod, classmethod)):
        yield ".__func__", value.__func__
    elif isinstance(value, property):
        yield from ((f".{k}", getattr(value, k)) for k in ("fget", "fset"))
    elif isinstance(value, types.CellType):
        yield ".cell_contents", _cell(value)
    elif isinstance(value, (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)):
        yield from _suspended(value)
    elif isinstance(value, contextvars.ContextVar):
        yield ".get()", value.get(None)
    elif isinstance(value, weakref.ref):
        yield "()", value()
    elif isinstance(value, random.Random):
        yield ".getstate()", repr(value.getstate())
    elif isinstance(value, (io.BytesIO, io.StringIO)):
        yield ".getvalue()", value.getvalue()
    elif _is_builtin(value):
        yield from ((f".<{i}>", v) for i, v in enumerate(gc.get_referents(value)) if not isinstance(v, type))


def _iterator(value: Any) -> Iterator[tuple[str, Any]]:
    """Where an iterator stands, by how it would be pickled: that does not move it."""
    try:
        state = value.__reduce__()
    except Exception:
        yield ".__length_hint__()", getattr(value, "__length_hint__", int)()
        return
    for i, part in enumerate(state[1:]):
        if isinstance(part, tuple):
            yield from ((f".<{i}.{j}>", item) for j, item in enumerate(part))
        else:
            yield f".<{i}>", part


def _function(value: types.FunctionType) -> Iterator[tuple[str, Any]]:
    if value.__module__ == MODULE:
        names = value.__code__.co_freevars
        yield from ((f".<{n}>", _cell(c)) for n, c in zip(names, value.__closure__ or (), strict=False))
        yield ".__defaults__", value.__defaults__
        yield from ((f".__kwdefaults__[{k}]", v) for k, v in (value.__kwdefaults__ or {}).items())


def _remembered(wrapper: Any) -> Iterator[tuple[str, Any]]:
    """What an lru_cache has handed out and somebody may have changed since."""
    for store in gc.get_referents(wrapper):
        if isinstance(store, dict) and store is not wrapper.__dict__:
            for entry in list(store.values()):
                # A bounded cache keeps its results in links.
                held = gc.get_referents(entry) if type(entry).__name__ == "_lru_list_elem" else [entry]
                yield from (
                    (f".<{type(v).__name__}@{id(v)}>", v) for v in held if isinstance(v, _MUTABLE) or _is_own(v)
                )


def _suspended(value: Any) -> Iterator[tuple[str, Any]]:
    for prefix in ("gi", "cr", "ag"):
        frame = getattr(value, f"{prefix}_frame", None)
        if frame is not None:
            yield ".f_lasti", frame.f_lasti
            yield from ((f".<{k}>", v) for k, v in frame.f_locals.items())


def _slots(value: Any) -> list[tuple[str, Any]]:
    """Attributes in `__slots__`."""
    found = []
    if type(value).__module__.partition(".")[0] == MODULE:
        for cls in type(value).__mro__:
            for name, member in vars(cls).items():
                if isinstance(member, types.MemberDescriptorType):
                    with contextlib.suppress(AttributeError):
                        found.append((f".{name}", member.__get__(value)))
    return found


def _is_own(value: Any) -> bool:
    return type(value).__module__ == MODULE


def _is_builtin(value: Any) -> bool:
    """Whether only the collector knows what the object holds."""
    return not hasattr(value, "__dict__") and type(value).__module__ != MODULE and gc.is_tracked(value)


def _is_foreign(value: Any) -> bool:
    """Whether the attributes are torch's or Triton's business, or a function's of somebody else."""
    if isinstance(value, types.FunctionType):
        return value.__module__ != MODULE
    return type(value).__module__.split(".")[0] in ("torch", "triton") and not isinstance(value, torch.nn.Module)


def generators() -> Iterator[tuple[str, str]]:
    """Where the process's own random number generators stand."""
    yield "random.getstate()", str(hash(random.getstate()))
    if "numpy" in sys.modules:
        state = sys.modules["numpy"].random.get_state()
        yield "numpy.random.get_state()", str(hash((state[1].tobytes(), *state[2:])))


def settings() -> Iterator[tuple[str, Any]]:
    """What functions that a file may call leave in the whole process, and what a later call may read there."""
    yield "warnings.filters", len(warnings.filters)
    yield "the hooks registered so far", hooks.RemovableHandle.next_id
    if "logging" in sys.modules:
        root = sys.modules["logging"].root
        for name, logger in sorted({"root": root, **root.manager.loggerDict}.items()):
            fields = ("level", "disabled", "propagate", "handlers", "filters")
            values = (getattr(logger, field, None) for field in fields)
            yield f"the logger {name}", repr([len(v) if isinstance(v, list) else v for v in values])


def named(stores: list[tuple[str, str]], namespace: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Attributes that the file sets of something else than `self`: (place, value), for those that are there.

    `stores` holds the object's expression, where that is a name with attributes, and the attribute's name.
    """
    missing = object()
    for owner, name in stores:
        head, *attributes = owner.split(".")
        value = namespace.get(head, missing)
        for attribute in attributes:
            value = getattr(value, attribute, missing)
        if value is not missing and head:
            found = getattr(value, name, missing)
            if found is not missing:
                yield f"{owner}.{name}", found
            continue
        for module_name, module in list(sys.modules.items()):
            found = getattr(module, "__dict__", {}).get(name, missing)
            if found is not missing and isinstance(found, (*PLAIN, list, dict, set, torch.Tensor)):
                yield f"{module_name}.{name}", found


def _is_cached(owner: Any, name: str, value: Any) -> bool:
    """Whether the attribute is what a `functools.cached_property` remembers, and no tensor."""
    return isinstance(value, PLAIN) and isinstance(getattr(type(owner), name, None), functools.cached_property)


def _key(key: Any) -> str:
    """A dictionary's key as text that is the same in every run."""
    if isinstance(key, tuple) and len(key) <= 8:
        return f"({', '.join(_key(k) for k in key)})"
    return repr(key)[:80] if isinstance(key, PLAIN) else f"{type(key).__name__}@{id(key)}"


def _cell(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None
