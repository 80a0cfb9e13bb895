"""Runs a candidate's `__init__` for real, on the CPU, under two seeds, and hands out the tensors that it makes; and
once more under the first seed, with other numbers in place of fixed weights (`constants`).

The job holds neither inputs nor expected outputs. Its tensors become the constants of a plan, under the same attribute
paths as the tracer's.
"""

from __future__ import annotations

import builtins
import random
import sys
from collections import Counter
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from triton.runtime import driver
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction

from . import constants, trace_torch
from .trace_conditions import Conditions, install_memory
from .trace_device import DEVICES, Card, Driver
from .trace_module import decode, tensors_of
from .trace_record import DTYPES
from .trace_source import Source, error

MAX_BYTES = 8 << 30
_TARGET = {"backend": "cuda", "arch": "90", "warp_size": 32}


class NotInInit(RuntimeError):
    """A kernel was launched in `__init__`, where nothing can run it."""


class UnsupportedArgument(ValueError):
    """A constructor argument that this job cannot have."""


class _CpuForCuda(TorchFunctionMode):
    """Lets code that asks for the GPU run on the CPU."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func is torch.Tensor.cuda:
            return args[0]
        if "device" in kwargs:
            kwargs["device"] = _cpu(kwargs["device"])
        if func is torch.Tensor.to:
            args = (args[0], *(_cpu(a) if isinstance(a, (str, torch.device)) else a for a in args[1:]))
        return func(*args, **kwargs)


def _cpu(device: Any) -> Any:
    if device is None:
        return None
    if isinstance(device, int) or torch.device(device).type == "cuda":
        return torch.device("cpu")
    return device


def run(request: dict[str, Any], scratch: str) -> dict[str, Any]:
    """`{source, signature, seeds, fixed, rule, data}` to
    `{rule, tensors: [{path, dtype, shape, blobs: [{offset, nbytes}: one a seed, then with fixed weights changed]}]}`.

    `fixed` are the fixed weights of the reference (without them there is no last run), and `rule` says how they are
    changed (`constants.Change`); without one the job chooses what suits. The contiguous bytes of each tensor are
    written to the file `data`.
    """
    try:
        source = Source(request["source"], scratch, [])
    except (SyntaxError, ValueError, RecursionError) as exception:
        return error("syntax", exception, getattr(exception, "lineno", None))
    _install()
    try:
        return _collect(source, request)
    except (NotInInit, UnsupportedArgument) as exception:
        return source.error("untraceable" if isinstance(exception, NotInInit) else "unsupported", exception)
    except MemoryError:
        raise
    except BaseException as exception:
        return source.error("exception", exception)


def _install() -> None:
    properties = DEVICES[_TARGET["arch"]]
    driver.set_active(Driver(_TARGET, properties))
    trace_torch.hide_devices()
    card = Card(properties)
    trace_torch.install_cuda(trace_torch.Streams(), card)
    install_memory(Conditions(), card, lambda rule, tier, message: None)

    def refuse(self: Any, *args: Any, **kwargs: Any) -> None:
        raise NotInInit("a kernel is launched in __init__")

    JITFunction.run = refuse
    Autotuner.run = refuse


def _collect(source: Source, request: dict[str, Any]) -> dict[str, Any]:
    tensors: dict[str, dict[str, Any]] = {}
    signature, seeds = request["signature"], request["seeds"]
    with open(request["data"], "wb") as data:

        def take(made: dict[str, torch.Tensor]) -> None:
            for path, tensor in made.items():
                entry = {"path": path, "dtype": DTYPES[tensor.dtype], "shape": list(tensor.shape), "blobs": []}
                entry = tensors.setdefault(path, entry)
                entry["blobs"].append(_write(data, tensor))

        written = []
        for seed in seeds:
            watch = constants.Watch()
            take(_construct(source, signature, seed, watch))
            written.append(watch.made)
        runs, rule = len(seeds), None
        if "fixed" in request:
            wanted = [(digest, parameter) for digest, parameter in request["fixed"]]
            change = _change(wanted, constants.fixed(*written), seeds[0], request["rule"])
            take(_construct(source, signature, seeds[0], constants.Watch(change)))
            runs, rule = runs + 1, change.rule
    # A tensor that exists under some seeds only, or changes its type, has no one value.
    whole = [t for t in tensors.values() if len(t["blobs"]) == runs and _one_size(t)]
    return {"rule": rule, "tensors": whole}


def _change(
    wanted: list[tuple[str, bool]], made: list[tuple[str, bool]], seed: int, rule: str | None
) -> constants.Change:
    """The change of fixed weights that suits what this constructor writes, beside what the reference's writes.

    What the reference does not write, in whatever shape, is a constant of the candidate's own: it stays. So does a
    buffer in a shape that the reference lacks: it may be a workspace.
    """
    known = {digest for digest, _ in wanted}
    contents = {constants.contents_of(digest) for digest in known}
    made = [
        (digest, parameter)
        for digest, parameter in made
        if (constants.contents_of(digest) in contents if parameter else digest in known)
    ]
    if rule is None:
        rule = constants.EACH if Counter(made) == Counter(wanted) else constants.SAME
    parameters = [digest for digest, parameter in made if parameter]
    return constants.Change(rule, seed, parameters, [digest for digest, parameter in made if not parameter])


def _construct(source: Source, signature: dict[str, Any], seed: int, watch: constants.Watch) -> dict[str, torch.Tensor]:
    """The module's tensors under a seed, set immediately before the constructor as evaluators do."""
    with _CpuForCuda():
        _seed(seed)
        module = source.module(vars(builtins))
        source.run(module)
        namespace = module.__dict__
        if not isinstance(namespace.get("ModelNew"), type):
            raise NameError("the file defines no class ModelNew")
        args = [decode(v, _no_tensor) for v in signature["init_args"]]
        kwargs = {k: decode(v, _no_tensor) for k, v in signature["init_kwargs"]}
        _seed(seed)
        with watch:
            module = namespace["ModelNew"](*args, **kwargs)
    return {path: t for path, t, _ in tensors_of(module, namespace) if t.dtype in DTYPES and t.device.type == "cpu"}


def _no_tensor(ref: dict[str, Any]) -> torch.Tensor:
    raise UnsupportedArgument("a constructor argument is a tensor, whose data this job may not have")


def _seed(seed: int) -> None:
    torch.manual_seed(seed)
    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed % 2**32)


def _write(data: Any, tensor: torch.Tensor) -> dict[str, int]:
    flat = tensor.detach().contiguous().reshape(-1)
    offset = data.tell()
    nbytes = flat.numel() * flat.element_size()
    if offset + nbytes > MAX_BYTES:
        raise ValueError(f"the tensors made in __init__ take more than {MAX_BYTES} bytes")
    if nbytes:
        data.write(memoryview(flat.view(torch.uint8).numpy()))
    return {"offset": offset, "nbytes": nbytes}


def _one_size(tensor: dict[str, Any]) -> bool:
    return len({blob["nbytes"] for blob in tensor["blobs"]}) == 1
