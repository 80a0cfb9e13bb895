"""Circumstances that evaluators and users differ in: a plan must be the same in all of them.

Each is a context manager that changes what the file is told, and takes it back.
"""

from __future__ import annotations

import builtins
import contextlib
import os
import random
import sys
import types
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
import triton
from torch._library.custom_ops import OPDEF_TO_LIB
from torch.torch_version import TorchVersion

from .trace_device import DeviceProperties
from .trace_source import MODULE

if TYPE_CHECKING:
    from .trace import Session

_ENVIRON = os.environ  # the candidate may replace the name
_getcwd, _chdir = os.getcwd, os.chdir
_EXECUTED = "builtins"
"""What `__name__` is in a text that is given to `exec` with an empty namespace."""


@contextlib.contextmanager
def elsewhere(session: Session) -> Iterator[None]:
    """Other seeds, arguments, folder, environment, process, host, card, stream and memory use."""
    conditions, streams = session.conditions, session.streams
    argv, environ, folder = list(sys.argv), dict(_ENVIRON), _getcwd()
    sys.argv[:] = ["main"]
    _ENVIRON.clear()
    _ENVIRON.update({k: v for k, v in environ.items() if k in ("PATH", "HOME", "LANG")})
    _chdir("/")
    random.seed(977)
    torch.manual_seed(977)
    conditions.salt, conditions.used, streams.handle = 0x5BD3, conditions.used * 37, 0x7F5A_1BC0
    try:
        yield
    finally:
        sys.argv[:] = argv
        _ENVIRON.clear()
        _ENVIRON.update(environ)
        _chdir(folder)
        conditions.salt, conditions.used, streams.handle = 0, conditions.used // 37, 0


@contextlib.contextmanager
def other_evaluator(session: Session, index: int) -> Iterator[None]:
    """Card `index` of eight, a stream of the caller's own, other versions, and flags for speed that are set."""
    card, matmul, cudnn = session.card, torch.backends.cuda.matmul, torch.backends.cudnn
    versions = (triton.__version__, torch.__version__, torch.version.__version__, torch.version.cuda)
    flags = (torch.get_float32_matmul_precision(), cudnn.benchmark, cudnn.allow_tf32, matmul.allow_tf32)
    card.index, card.count, session.streams.handle = index, 8, 0x7F5A_1BC0
    triton.__version__ = f"{versions[0]}.post1"
    torch.__version__ = torch.version.__version__ = TorchVersion(f"{str(versions[1]).partition('+')[0]}+cu128")
    torch.version.cuda = "12.8"
    torch.set_float32_matmul_precision("high")
    cudnn.benchmark, cudnn.allow_tf32, matmul.allow_tf32 = not flags[1], not flags[2], True
    session.looks = 0  # what is set here is not the file's doing
    try:
        yield
    finally:
        card.index, card.count, session.streams.handle = 0, 1, 0
        triton.__version__, torch.__version__, torch.version.__version__, torch.version.cuda = versions
        matmul.allow_tf32, cudnn.allow_tf32, cudnn.benchmark = flags[3], flags[2], flags[1]
        torch.set_float32_matmul_precision(flags[0])
        session.looks = 0


@contextlib.contextmanager
def other_card(session: Session, figures: DeviceProperties) -> Iterator[None]:
    """A device of another kind in place of the target."""
    card, target = session.card, session.card.properties
    if target.gcnArchName:  # architectures of the other vendor have no counterpart
        figures = replace(target, name=figures.name, multi_processor_count=figures.multi_processor_count)
    card.properties = figures
    try:
        yield
    finally:
        card.properties = target


@contextlib.contextmanager
def executed(session: Session) -> Iterator[None]:
    """The file as an evaluator has it that gives the problem's and the candidate's text to `exec`."""
    before, known = session.namespace, sys.modules.get(MODULE)
    lent = "__builtins__" in vars(builtins)
    module = session.source.module(before["__builtins__"])
    namespace = module.__dict__
    for name in ("__file__", "__cached__", "__loader__", "__spec__", "__package__"):
        namespace.pop(name, None)
    namespace.update(__name__=_EXECUTED, get_inputs=list, get_init_inputs=list, Model=torch.nn.Module)
    sys.modules.pop(MODULE, None)
    session.namespace = namespace
    try:
        with session.mode, libraries_kept():
            session.source.run(module)
        namespace["__doc__"] = None
        _rename(namespace)
        yield
    finally:
        session.namespace = before
        if not lent:
            vars(builtins).pop("__builtins__", None)  # `exec` in the library puts it there: dataclasses
        if known is not None:
            sys.modules[MODULE] = known


@contextlib.contextmanager
def libraries_kept() -> Iterator[None]:
    """An operator that is defined once more would free the first one, which the calls that follow use: it is an error
    instead."""
    kept = dict(OPDEF_TO_LIB)
    OPDEF_TO_LIB.clear()
    try:
        yield
    finally:
        OPDEF_TO_LIB.update(kept)


@contextlib.contextmanager
def renamed(session: Session) -> Iterator[None]:
    """The namespace that is there, with the names of one that was given to `exec`."""
    namespace, before = session.namespace, dict(session.namespace)
    for name in ("__file__", "__cached__", "__loader__", "__spec__", "__package__"):
        namespace.pop(name, None)
    namespace.update(__name__=_EXECUTED, __doc__=None)
    try:
        yield
    finally:
        namespace.update({name: before[name] for name in before if name.startswith("__")})


def _rename(namespace: dict[str, Any]) -> None:
    """Classes of the file are known by their module's name."""
    for value in list(namespace.values()):
        if isinstance(value, (type, types.FunctionType)) and value.__module__ == _EXECUTED:
            with contextlib.suppress(AttributeError, TypeError):
                value.__module__ = MODULE
