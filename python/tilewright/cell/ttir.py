"""Compile handler `ttir`: one specialisation of a kernel-only module to Triton IR text.

Request: `{module, spec: KernelSpec, target: Target}`. Response: `{ttir, entry}` or an error document.
The text has locations, in the candidate's own lines.
"""

from __future__ import annotations

import linecache
import sys
import types
from collections import namedtuple
from typing import Any

from tilewright.cell import triton_backend as backend_module
from tilewright.cell.triton_backend import SOURCE_NAME, GPUTarget

from tilewright.cell.make_ir import make_ir  # isort: skip
import triton.language as tl  # isort: skip
from triton.compiler.compiler import ASTSource, filter_traceback, make_backend  # isort: skip
from triton.compiler.errors import CompilationError  # isort: skip
from triton.runtime.jit import JITCallable, get_jit_fn_file_line  # isort: skip

_WARM_MODULE = """
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(y_ptr + offsets, libdevice.tanh(x - tl.max(x, axis=0)), mask=offsets < n)
"""
_WARM_SPEC: dict[str, Any] = {
    "function": "kernel",
    "params": [
        {"name": "x_ptr", "ty": "*fp32"},
        {"name": "y_ptr", "ty": "*fp32"},
        {"name": "n", "ty": "i32"},
        {"name": "BLOCK", "ty": "constexpr"},
    ],
    "constexprs": {"3": {"kind": "number", "value": 64}},
    "options": {},
}


def warm() -> None:
    """Compile a kernel in the zygote, for the imports that come with the first. No threads start."""
    backend_module.warm()
    to_ttir(load_module(_WARM_MODULE), _WARM_SPEC, GPUTarget("cuda", 90, 32))
    sys.modules.pop("candidate", None)
    linecache.cache.pop(SOURCE_NAME, None)


def run(request: dict[str, Any], scratch: str) -> dict[str, Any]:
    """Handle one job; `scratch` is a writable folder."""
    module = None
    with backend_module.captured_diagnostics(scratch) as diagnostics:
        try:
            module = load_module(request["module"])
            return to_ttir(module, request["spec"], backend_module.gpu_target(request["target"]))
        except Exception as exception:
            failure = exception
    return describe(failure, module, diagnostics)


def load_module(source: str) -> types.ModuleType:
    """Run a kernel-only module. Its lines are the candidate's."""
    module = types.ModuleType("candidate")
    module.__file__ = SOURCE_NAME
    # Registered, so that `inspect` finds the source by the functions' module name.
    sys.modules["candidate"] = module
    exec(backend_module.compile_source(source), module.__dict__)
    return module


def to_ttir(module: types.ModuleType, spec: dict[str, Any], target: Any) -> dict[str, Any]:
    """Build the IR of one specialisation and run the backend's first stage over it."""
    function = resolve(module, spec["function"])
    if not isinstance(function, JITCallable):
        raise TypeError(f"{spec['function']} is not a Triton kernel")
    source = ASTSource(
        fn=function,
        signature=signature(function.arg_names, spec["params"]),
        constexprs={parse_path(path): constexpr(module, value) for path, value in spec["constexprs"].items()},
        attrs={
            parse_path(path): [[name, value] for name, value in attrs] for path, attrs in spec.get("attrs", {}).items()
        },
    )
    options = backend_module.parse_options(make_backend(target), spec["options"])
    text, entry = make_ir(source, options, target)
    return {"ttir": text, "entry": entry}


def resolve(module: types.ModuleType, name: str) -> Any:
    """A function of the module by its dotted name, without the autotuner or heuristics around it."""
    value: Any = module
    for part in name.split("."):
        value = getattr(value, part)
    while not isinstance(value, JITCallable) and hasattr(value, "fn"):
        value = value.fn
    return value


def parse_path(path: str) -> tuple[int, ...]:
    """`"3.1"` is the second element of the tuple passed as the fourth parameter."""
    return tuple(int(part) for part in path.split("."))


def signature(names: list[str], params: list[dict[str, str]]) -> dict[str, Any]:
    """Triton's signature: tuples are flattened in the spec (`name.0`, `name.1`, or `name.field`), nested here."""
    tree: dict[str, Any] = dict.fromkeys(names, ())
    for param in params:
        first, *rest = param["name"].split(".")
        if first not in tree:
            raise ValueError(f"the kernel has no parameter {first}")
        if not rest:
            tree[first] = param["ty"]
            continue
        node = tree[first] = tree[first] or {}
        for part in rest[:-1]:
            node = node.setdefault(part, {})
        node[rest[-1]] = param["ty"]
    return {name: _tuple_type(node) for name, node in tree.items()}


def _tuple_type(node: Any) -> Any:
    if not isinstance(node, dict):
        return node
    items = [_tuple_type(item) for item in node.values()]
    if all(key.isdigit() for key in node):
        return tuple(items)
    return namedtuple("Fields", node.keys())(*items)


def constexpr(module: types.ModuleType, value: dict[str, Any]) -> Any:
    """A compile-time value from a contract `Constexpr`."""
    match value["kind"]:
        case "none":
            return None
        case "number":
            number = value["value"]
            return float(number) if isinstance(number, str) else number
        case "integer":
            return int(value["value"], 0)
        case "str":
            return value["value"]
        case "dtype":
            return dtype(value["value"])
        case "function":
            return resolve(module, value["value"])
        case "tuple":
            return tuple(constexpr(module, item) for item in value["items"])
        case kind:
            raise ValueError(f"unknown kind of constexpr {kind!r}")


def dtype(name: str) -> Any:
    """A Triton dtype by Triton's name; `*` makes a pointer type."""
    return tl.pointer_type(dtype(name[1:])) if name.startswith("*") else tl.dtype(name)


def describe(exception: Exception, module: types.ModuleType | None, diagnostics: Any) -> dict[str, Any]:
    """Any failure here is a `compile_error`: the module and the spec are all the input there is."""
    if isinstance(exception, SyntaxError):
        return backend_module.error("compile_error", exception, message=exception.msg, line=exception.lineno)
    if isinstance(exception, CompilationError):
        filter_traceback(exception)
        message, line = innermost(exception, module)
        return backend_module.error("compile_error", exception, message=message, line=line)
    _, line, message = diagnostics.first_error()
    if message is not None:
        return backend_module.error("compile_error", exception, message=message, line=line)
    return backend_module.error("compile_error", exception)


def innermost(error: CompilationError, module: types.ModuleType | None) -> tuple[str, int | None]:
    """Message and candidate line of a compilation error: of the deepest call that lies in the candidate's file."""
    functions = [value for value in vars(module).values() if isinstance(value, JITCallable)] if module else []
    message, line = str(error), None
    current: BaseException | None = error
    while current is not None:
        if isinstance(current, CompilationError):
            message = current.error_message or message
            line = _line(current, functions) or line
        elif str(current):
            message = str(current)
        current = current.__cause__
    return message, line


def _line(error: CompilationError, functions: list[JITCallable]) -> int | None:
    if not hasattr(error.node, "lineno"):
        return None
    for function in functions:
        if function.src is error.src or function.src == error.src:
            file, first = get_jit_fn_file_line(function)
            if file == SOURCE_NAME:
                return first + error.node.lineno - 1
    return None
