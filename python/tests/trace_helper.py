"""Runs trace and init jobs the way the zygote does: in a child forked from a process that did the imports."""

from __future__ import annotations

import ast
import json
import os
import select
import sys
import tempfile
import time
from typing import Any

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))

import torch
from tilewright.cell import trace

H200 = {"backend": "cuda", "arch": "90", "warp_size": 32}
_warm = False


def in_child(function: Any, *args: Any, timeout: float = 60.0) -> Any:
    """The JSON value of `function(*args)`, computed in a forked child; `{"died": ...}` if there is none."""
    global _warm
    if not _warm:
        trace.warm()
        _warm = True
    sys.stdout.flush()
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        null = os.open(os.devnull, os.O_WRONLY)
        if not os.environ.get("TRACE_SHOW"):
            os.dup2(null, 1)
            os.dup2(null, 2)
        try:
            with os.fdopen(write, "w") as pipe:
                pipe.write(json.dumps(function(*args)))
        finally:
            os._exit(0)
    os.close(write)
    data = b""
    end = time.monotonic() + timeout
    while True:
        ready, _, _ = select.select([read], [], [], max(end - time.monotonic(), 0.0))
        if not ready:
            os.kill(pid, 9)
            break
        chunk = os.read(read, 1 << 16)
        if not chunk:
            break
        data += chunk
    os.close(read)
    _, status = os.waitpid(pid, 0)
    try:
        return json.loads(data)
    except json.JSONDecodeError:
        return {"died": status}


def kernels_of(source: str) -> list[dict[str, Any]]:
    """Functions decorated with something that ends in `jit`, as the screen would list them."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            names = []
            for d in node.decorator_list:
                d = d.func if isinstance(d, ast.Call) else d
                names.append(getattr(d, "attr", getattr(d, "id", "")))
            if any(name.endswith("jit") for name in names):
                found.append({"name": node.name, "line": node.lineno})
    return found


def value(v: Any, buffers: list[int], known: dict[int, int]) -> dict[str, Any]:
    """A Python value as `tilewright_contract::Value`."""
    if v is None:
        return {"kind": "none"}
    if isinstance(v, torch.Tensor):
        storage = v.untyped_storage()
        if storage._cdata not in known:
            known[storage._cdata] = len(buffers)
            buffers.append(storage.nbytes())
        size = v.element_size()
        return {
            "kind": "tensor",
            "buffer": known[storage._cdata],
            "dtype": str(v.dtype)[6:],
            "shape": list(v.shape),
            "strides": list(v.stride()),
            "offset": v.storage_offset() * size,
        }
    if isinstance(v, (bool, int, float)):
        return {"kind": "number", "value": v}
    if isinstance(v, str):
        return {"kind": "str", "value": v}
    if isinstance(v, (torch.dtype, torch.device)):
        return {"kind": "torch", "value": str(v)}
    if isinstance(v, (list, tuple)):
        return {"kind": type(v).__name__, "items": [value(i, buffers, known) for i in v]}
    return {"kind": "dict", "items": [[k, value(i, buffers, known)] for k, i in v.items()]}


def signature_of(
    inputs: list[Any],
    init: list[Any] = (),
    model: torch.nn.Module | None = None,
    training: bool = False,
    gradients: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """The case signature of inputs, constructor arguments and a reference module; with `gradients`, the last of the
    inputs is the list of cotangents."""
    buffers: list[int] = []
    known: dict[int, int] = {}
    state = model.state_dict() if model is not None else {}
    return {
        "case": "default",
        "args": [value(v, buffers, known) for v in inputs],
        "init_args": [value(v, buffers, known) for v in init],
        "init_kwargs": [],
        "buffers": buffers,
        "state": [
            {
                "name": name,
                "dtype": str(t.dtype)[6:],
                "shape": list(t.shape),
                "strides": list(torch.empty(t.shape).stride()),
                "offset": 0,
            }
            for name, t in state.items()
        ],
        "parameters": [name for name, _ in model.named_parameters()] if model is not None else [],
        "training": training,
        **({} if gradients is None else {"gradients": gradients}),
    }


def request_of(source: str, signature: dict[str, Any], target: dict[str, Any] = H200, **more: Any) -> dict[str, Any]:
    try:
        kernels = kernels_of(source)
    except (SyntaxError, ValueError):
        kernels = []
    return {
        "source": source,
        "signature": signature,
        "kernels": kernels,
        "target": target,
        "further": {"up_to": 63},
        **more,
    }


def traced(source: str, signature: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The answer of a trace job, run in a child."""
    with tempfile.TemporaryDirectory() as scratch:
        return in_child(trace.run, request_of(source, signature, **more), scratch)
