"""torch, Triton and the interpreter before and after a candidate: what it replaced or set is tampering."""

from __future__ import annotations

import builtins
import functools
import gc
import importlib
import inspect
import json
import linecache
import operator
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

from . import trace_torch
from .trace_compiled import CompiledKernel
from .trace_device import DeviceProperties

if TYPE_CHECKING:
    from .trace import Session

_ENVIRON = os.environ  # the candidate may replace the name
_HANDED_OUT = (trace_torch.Stream, trace_torch.Event, trace_torch.StreamContext, DeviceProperties, CompiledKernel)


_known: dict[str, dict[str, Any]] = {}
"""The namespaces' names as they first were, in the zygote: a child copies only what differs, since every object that it
so much as counts is one more page of its own."""


def _names(label: str, space: Any) -> dict[str, Any]:
    """A namespace as it is now."""
    now = vars(space)
    known = _known.get(label)
    if known is None:
        known = _known[label] = dict(now)
    return known if _same(known, now) else dict(now)


def _same(a: Any, b: Any) -> bool:
    """Whether two namespaces hold the same objects under the same names in the same order."""
    return len(a) == len(b) and all(map(operator.is_, a.values(), b.values())) and all(map(operator.is_, a, b))


def _namespaces() -> list[tuple[str, Any]]:
    """Modules and classes whose names a file must not touch, as they are now: a trace has some of its own. The tracer's
    modules are out of reach, but not the classes of what it hands out."""
    return [
        ("torch", torch),
        ("torch.Tensor", torch.Tensor),
        *((one.__name__, one) for one in _HANDED_OUT),
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


_VALUES = (bool, int, float, str, bytes, tuple, type(None))

# Names that torch and Triton set themselves while they work.
_LAZY = {
    "__warningregistry__",
    "__slotnames__",
    "__annotations__",
    "_lazy_call",
    "cache",
    "cache_hits",
    "cache_misses",
    "cache_bypasses",
}


_HOOKS = ("_global_forward_hooks", "_global_forward_pre_hooks", "_global_backward_hooks", "_global_backward_pre_hooks")


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
        "torch.backends.cudnn.deterministic": torch.backends.cudnn.deterministic,
        "torch.is_anomaly_enabled()": torch.is_anomaly_enabled(),
        "torch.set_printoptions()": repr(vars(torch._tensor_str.PRINT_OPTS)),
        "global module hooks": sum(len(v) for k, v in vars(torch.nn.modules.module).items() if k in _HOOKS),
        "sys.getrecursionlimit()": sys.getrecursionlimit(),
        "sys.getswitchinterval()": sys.getswitchinterval(),
        "gc.isenabled()": gc.isenabled(),
        "gc.get_threshold()": gc.get_threshold(),
        "sys.gettrace()": sys.gettrace(),
        "sys.getprofile()": sys.getprofile(),
        "torch function modes": torch._C._len_torch_function_stack(),
        "torch dispatch modes": torch.utils._python_dispatch._len_torch_dispatch_stack(),
    }


def _precision() -> dict[str, Any]:
    """Precision and tuning flags: declared harmless, because torch computes nothing here, but worth knowing."""
    return {
        "torch.backends.cudnn.benchmark": torch.backends.cudnn.benchmark,
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


@functools.cache
def _modules() -> dict[str, Any]:
    """Modules in whose places a file must put no others, as the zygote has them."""
    roots = ("torch", "triton", "json", "time", "os", "numpy")
    return {name: module for name, module in list(sys.modules.items()) if name.split(".")[0] in roots}


class Snapshot:
    """torch, Triton and the interpreter as they are before the candidate is imported."""

    def __init__(self) -> None:
        self._spaces = [(label, space, _names(label, space)) for label, space in _namespaces()]
        self._settings, self._precision, self._knobs = _settings(), _precision(), _knobs()
        self._environ, self._modules = dict(_ENVIRON), _modules()
        self._threads = set(threading.enumerate())

    def freeze(self) -> None:
        """Remembers what is there as a call of `forward` begins: `replaced_now` compares with this."""
        self._frozen = [(label, space, dict(vars(space))) for label, space, _ in self._spaces]
        self._as_called = _settings()

    def replaced_now(self) -> list[str]:
        """What is replaced at this moment; it may be put back before anybody looks again."""
        names = []
        for label, space, before in self._frozen:
            now = vars(space)
            if len(now) != len(before) or not all(map(operator.is_, now.values(), before.values())):
                names += [f"{label}.{name}" for name in _changed(before, now) if not _lazy(name, before, now)]
        return names

    def settings_left(self) -> list[str]:
        """What a call of `forward` left set otherwise than it was."""
        return _changed(self._as_called, _settings())

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
        for name in _changed(self._environ, dict(_ENVIRON)):
            add("environment", "evidence", f"the file sets the environment variable {name}", name)
        for name, module in self._modules.items():
            if sys.modules.get(name) is not module:
                add("tampering", "proof", f"the file replaces the module {name}", name)
        for thread in threading.enumerate():
            if thread not in self._threads:
                add("thread", "proof", f"a thread is left running: {thread.name}", "Thread")
        return found[:50]

    def _replaced(self) -> list[str]:
        names = []
        for label, space, before in self._spaces:
            after = vars(space)
            if not _same(before, after):
                names += [f"{label}.{name}" for name in _changed(before, after) if not _lazy(name, before, after)]
        return names


def _lazy(name: str, before: Any, after: Any) -> bool:
    """Whether torch or Triton set the name themselves while they work."""
    return name in _LAZY or (name not in before and isinstance(after.get(name), types.ModuleType))


def _changed(before: Any, after: Any) -> list[str]:
    missing = object()
    return [
        str(name) for name in {**before, **after} if not _equal(before.get(name, missing), after.get(name, missing))
    ]


def _equal(a: Any, b: Any) -> bool:
    return a is b or (isinstance(a, _VALUES) and type(a) is type(b) and a == b)
