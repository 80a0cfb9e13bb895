"""Whether the file is a pure function of shapes, dtypes, modes and parameters, and leaves everything else alone.

Three instruments: `repeat` traces `forward` again under other circumstances and demands the same plan, `Fingerprint`
sees writes to the module's and the file's state, `Snapshot` sees changes to torch, Triton and the interpreter.
"""

from __future__ import annotations

import builtins
import collections
import functools
import gc
import importlib
import inspect
import json
import linecache
import os
import random
import subprocess
import sys
import threading
import time
import types
from typing import TYPE_CHECKING, Any

import torch
import triton
import triton.language as tl
import triton.testing
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from triton.runtime import autotuner, jit

from .trace_record import Recorder, TraceEnd, storage_of
from .trace_source import MODULE
from .trace_torch import Event, Stream

if TYPE_CHECKING:
    from .trace import Built, Session

# repeated traces --------------------------------------------------------------------------------------------------------


def repeat(session: Session, built: Built, call: Any, base: dict[str, Any]) -> list[dict[str, Any]]:
    """Traces `forward` under other circumstances; findings where the plan is not the same."""
    findings: list[dict[str, Any]] = []

    def again(what: str, rule: str, make: Any) -> None:
        try:
            rec = make()
        except TraceEnd:
            return
        except Exception as exception:
            if rule == "grad-mode":
                return  # writing to a parameter in place is an error there, and nothing runs it so
            findings.append(_finding(session, rule, f"{what}, forward raises {type(exception).__name__}: {exception}", 0))
            return
        findings.extend(f for f in rec.findings if f not in findings)
        line = difference(base, rec.plan())
        if line is not None:
            findings.append(_finding(session, rule, f"{what}, forward does something else", line))

    for count in ("second", "third", "fourth"):
        again(f"in a {count} call on the same inputs", "hidden-state", lambda: session.call(built, call))
    fresh_rule = "raw-pointer" if session.pointers_read and not findings else "hidden-state"
    again("on inputs at other addresses", fresh_rule, lambda: session.call(built, session.arguments()))
    session.clock.seconds += 7200.0
    again("two hours later", "hidden-state", lambda: session.call(built, session.arguments()))
    again("with gradients enabled", "grad-mode", lambda: session.call(built, session.arguments(), grad=True))
    with _elsewhere():
        again("in a fresh module under other seeds, arguments and environment", "hidden-state", lambda: _fresh(session))
    return findings


def _fresh(session: Session) -> Recorder:
    built = session.build()
    return session.call(built, session.arguments())


class _elsewhere:
    """Other seeds, program arguments and environment, for the length of a `with` block."""

    def __enter__(self) -> None:
        self._argv, self._environ = list(sys.argv), dict(os.environ)
        sys.argv[:] = ["main"]
        os.environ.clear()
        os.environ.update({k: v for k, v in self._environ.items() if k in ("PATH", "HOME", "LANG")})
        random.seed(977)
        torch.manual_seed(977)

    def __exit__(self, *exc: object) -> None:
        sys.argv[:] = self._argv
        os.environ.clear()
        os.environ.update(self._environ)


def _finding(session: Session, rule: str, message: str, line: int) -> dict[str, Any]:
    tier = {"raw-pointer": "untraceable", "grad-mode": "evidence"}.get(rule, "proof")
    return {
        "rule": rule,
        "tier": tier,
        "message": message[:500],
        "line": line,
        "help": "Do the same for the same shapes, dtypes and modes.",
    }


def difference(a: dict[str, Any], b: dict[str, Any]) -> int | None:
    """Line of the first step in which two plans differ (0 where a step is missing); None if they are the same."""
    for mine, other in zip(a["steps"], b["steps"], strict=False):
        if mine != other:
            return other["line"] or mine["line"]
    if len(a["steps"]) != len(b["steps"]):
        longer = max(a["steps"], b["steps"], key=len)
        return longer[min(len(a["steps"]), len(b["steps"]))]["line"]
    same = all(a[key] == b[key] for key in ("buffers", "kernels", "output", "choices"))
    return None if same else 0


# the file's own state -----------------------------------------------------------------------------------------------------

_OPAQUE = (Stream, Event, jit.JITCallable, jit.KernelInterface, types.ModuleType, types.BuiltinFunctionType, torch.dtype, torch.device)
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
                findings.append(_finding(session, "hidden-state", f"forward changes {path}", line))
                if len(findings) >= 8:
                    break
        for name, value in list(self._namespace.items()):
            if isinstance(value, functools._lru_cache_wrapper) and _holds_tensor(value):
                line = session.source.store_line(name)
                findings.append(_finding(session, "hidden-state", f"the cache of {name} keeps tensors", line))
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
    if depth > 8 or len(found) > _MAX_NODES or isinstance(value, (*_PLAIN, *_OPAQUE, torch.Tensor)) or id(value) in seen:
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
        cells = [(f".<{n}>", _cell(c)) for n, c in zip(value.__code__.co_freevars, value.__closure__ or (), strict=False)]
        return [(f".{k}", v) for k, v in value.__dict__.items()] + cells + [(".__defaults__", value.__defaults__)]
    if isinstance(value, type):
        if value.__module__ != MODULE:
            return []
        return [(f".{k}", v) for k, v in list(value.__dict__.items()) if k not in ("__dict__", "__weakref__", "__doc__")]
    if isinstance(value, types.MethodType):
        return [(".__self__", value.__self__), (".__func__", value.__func__)]
    if isinstance(value, functools.partial):
        return [(".func", value.func), (".args", value.args), (".keywords", value.keywords)]
    if isinstance(value, collections.deque):
        return [(f"[{i}]", v) for i, v in enumerate(list(value))]
    if type(value).__module__.split(".")[0] in ("torch", "triton") and not isinstance(value, torch.nn.Module):
        return []
    fields = getattr(value, "__dict__", None)
    return [(f".{k}", v) for k, v in list(fields.items())] if isinstance(fields, dict) else []


def _key(key: Any) -> str:
    return repr(key)[:80] if isinstance(key, _PLAIN) else f"{type(key).__name__} at {id(key):x}"


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


# everything else ------------------------------------------------------------------------------------------------------------


def _namespaces() -> list[tuple[str, Any]]:
    """Modules and classes whose names a file must not touch, as they are now."""
    own = [(name, module) for name, module in list(sys.modules.items()) if name.startswith(_OWN)]
    classes = [(f"{n}.{c.__name__}", c) for n, m in own for c in vars(m).values() if _is_own_class(c)]
    return [*_theirs(), *own, *classes]


_OWN = __name__.rpartition(".")[0] + ".trace"


def _is_own_class(value: Any) -> bool:
    return isinstance(value, type) and value.__module__.startswith(_OWN)


def _theirs() -> list[tuple[str, Any]]:
    return [
        ("torch", torch),
        ("torch.Tensor", torch.Tensor),
        ("torch.nn", torch.nn),
        ("torch.nn.Module", torch.nn.Module),
        ("torch.nn.Parameter", torch.nn.Parameter),
        ("torch.nn.functional", torch.nn.functional),
        ("torch.autograd.Function", torch.autograd.Function),
        ("torch.cuda", torch.cuda),
        ("torch.cuda.Event", torch.cuda.Event),
        ("torch.testing", torch.testing),
        ("torch.random", torch.random),
        ("torch.linalg", torch.linalg),
        ("torch.special", torch.special),
        ("torch.utils._python_dispatch", torch.utils._python_dispatch),
        ("FakeTensor", FakeTensor),
        ("FakeTensorMode", FakeTensorMode),
        ("triton", triton),
        ("triton.language", tl),
        ("triton.language.core", tl.core),
        ("triton.language.core.tensor", tl.core.tensor),
        ("triton.language.math", tl.math),
        ("triton.language.standard", tl.standard),
        ("triton.language.random", tl.random),
        ("triton.language.semantic", importlib.import_module("triton.language.semantic")),
        ("triton.language.extra.libdevice", importlib.import_module("triton.language.extra.libdevice")),
        ("triton.runtime.jit", jit),
        ("JITFunction", jit.JITFunction),
        ("JITCallable", jit.JITCallable),
        ("KernelInterface", jit.KernelInterface),
        ("triton.runtime.autotuner", autotuner),
        ("Autotuner", autotuner.Autotuner),
        ("Heuristics", autotuner.Heuristics),
        ("Config", autotuner.Config),
        ("triton.testing", triton.testing),
        ("triton.compiler.compiler", importlib.import_module("triton.compiler.compiler")),
        ("triton.runtime.driver", importlib.import_module("triton.runtime.driver")),
        ("builtins", builtins),
        ("json", json),
        ("json.JSONEncoder", json.JSONEncoder),
        ("time", time),
        ("os", os),
        ("random", random),
        ("inspect", inspect),
        ("linecache", linecache),
        ("gc", gc),
        ("threading.Thread", threading.Thread),
        ("subprocess", subprocess),
    ]

# Names that torch and Triton set themselves while they work.
_LAZY = {"__warningregistry__", "__slotnames__", "__annotations__", "_lazy_call", "cache", "cache_hits", "cache_misses", "cache_bypasses"}


def _settings() -> dict[str, Any]:
    """Process-wide values that a file has no business changing."""
    return {
        "torch.get_default_dtype()": torch.get_default_dtype(),
        "torch.get_default_device()": str(torch.get_default_device()),
        "torch.is_grad_enabled()": torch.is_grad_enabled(),
        "torch.is_inference_mode_enabled()": torch.is_inference_mode_enabled(),
        "torch.get_num_threads()": torch.get_num_threads(),
        "torch.are_deterministic_algorithms_enabled()": torch.are_deterministic_algorithms_enabled(),
        "torch.backends.cudnn.enabled": torch._C._get_cudnn_enabled(),
        "torch.backends.cudnn.benchmark": torch.backends.cudnn.benchmark,
        "torch.backends.cudnn.deterministic": torch.backends.cudnn.deterministic,
        "sys.gettrace()": sys.gettrace(),
        "sys.getprofile()": sys.getprofile(),
        "torch function modes": torch._C._len_torch_function_stack(),
        "torch dispatch modes": torch.utils._python_dispatch._len_torch_dispatch_stack(),
    }


def _precision() -> dict[str, Any]:
    """Precision flags: declared harmless, because torch computes nothing here, but worth knowing."""
    return {
        "torch.get_float32_matmul_precision()": torch._C._get_float32_matmul_precision(),
        "torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction": (
            torch._C._get_cublas_allow_fp16_reduced_precision_reduction()
        ),
        "torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction": (
            torch._C._get_cublas_allow_bf16_reduced_precision_reduction()
        ),
    }


def _knobs() -> dict[str, Any]:
    found = {}
    for name, group in vars(triton.knobs).items():
        if isinstance(group, triton.knobs.base_knobs):
            found.update({f"triton.knobs.{name}.{k}": v for k, v in vars(group).items()})
    return found


def _modules() -> dict[str, Any]:
    roots = ("torch", "triton", "json", "time", "os", "numpy")
    return {name: module for name, module in list(sys.modules.items()) if name.split(".")[0] in roots}


class Snapshot:
    """torch, Triton and the interpreter as they are before the candidate is imported."""

    def __init__(self) -> None:
        self._spaces = [(name, space, dict(vars(space))) for name, space in _namespaces()]
        self._settings, self._precision, self._knobs = _settings(), _precision(), _knobs()
        self._environ, self._modules = dict(os.environ), _modules()
        self._threads = set(threading.enumerate())

    def findings(self, session: Session) -> list[dict[str, Any]]:
        """What the candidate changed."""
        found: list[dict[str, Any]] = []

        def add(rule: str, tier: str, message: str, name: str) -> None:
            line = session.source.store_line(name.rsplit(".", 1)[-1].removesuffix("()"))
            found.append({"rule": rule, "tier": tier, "message": message, "line": line})

        for name in self._replaced():
            add("tampering", "proof", f"the file replaces {name}", name)
        for what, before, after in (
            ("sets", self._settings, _settings()),
            ("sets", self._knobs, _knobs()),
        ):
            for name in _changed(before, after):
                add("tampering", "proof", f"the file {what} {name}", name)
        for name in _changed(self._precision, _precision()):
            add("precision-flag", "evidence", f"the file sets {name}", name)
        for name in _changed(self._environ, dict(os.environ)):
            add("environment", "evidence", f"the file sets the environment variable {name}", name)
        later = _modules()
        for name, module in self._modules.items():
            if later.get(name) is not module:
                add("tampering", "proof", f"the file replaces the module {name}", name)
        for thread in threading.enumerate():
            if thread not in self._threads:
                add("thread", "proof", f"a thread is left running: {thread.name}", "Thread")
        return found[:50]

    def _replaced(self) -> list[str]:
        names = []
        for label, space, before in self._spaces:
            after = vars(space)
            for name in _changed(before, after):
                value = after.get(name)
                lazy = name in _LAZY or (name not in before and (isinstance(value, types.ModuleType)))
                if not lazy:
                    names.append(f"{label}.{name}")
        return names


def _changed(before: Any, after: Any) -> list[str]:
    missing = object()
    return [
        str(name)
        for name in {**before, **after}
        if not _equal(before.get(name, missing), after.get(name, missing))
    ]


def _equal(a: Any, b: Any) -> bool:
    return a is b or (isinstance(a, (*_PLAIN, tuple)) and type(a) is type(b) and a == b)


def warm() -> None:
    """Walks everything once, so that lazily made attributes exist before a candidate runs."""
    Snapshot()
