"""Triton launches seen by the tracer: bound and specialised by Triton's own code, then written down, never run."""

from __future__ import annotations

import enum
import operator
from typing import TYPE_CHECKING, Any

import torch
import triton.language as tl
from triton.runtime import driver
from triton.runtime.jit import JITFunction, TensorWrapper
from triton.tools.tensor_descriptor import TensorDescriptor

from .trace_compiled import Compile, CompiledKernel
from .trace_record import Recorder, TraceEnd, number, storage_of
from .trace_seal import sealed
from .trace_source import NOT_LITERAL

try:
    import numpy
except ImportError:  # torch works without it
    numpy = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from .trace import Session

OPTIONS = (
    "num_warps",
    "num_stages",
    "num_ctas",
    "maxnreg",
    "enable_fp_fusion",
    "launch_cooperative_grid",
    "launch_pdl",
)

_DTYPES = (*tl.dtype.SINT_TYPES, *tl.dtype.UINT_TYPES, *tl.dtype.FP_TYPES, *tl.dtype.OTHER_TYPES)
_NUMPY_SCALARS = frozenset() if numpy is None else frozenset(numpy.sctypeDict.values())
_PLAIN = {bool, int, float, str, object, enum.Enum, enum.IntEnum, enum.StrEnum, enum.ReprEnum}
_ENUM_NAMES = {name for kind in (int, str) for name in vars(enum.Enum("_Any", ["A"], type=kind))}
"""What the interpreter itself puts into an enumeration."""


def install(session: Session) -> None:
    """Replaces Triton's launch functions in this process."""

    def run(self: JITFunction, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> CompiledKernel:
        return launch(session, self, args, grid, warmup, kwargs)

    JITFunction.run = sealed(run)


# one launch ---------------------------------------------------------------------------------------------------------


def launch(
    session: Session, fn: JITFunction, args: tuple[Any, ...], grid: Any, warmup: bool, kwargs: dict[str, Any]
) -> CompiledKernel:
    rec = session.recorder(f"kernel {fn.__name__} is launched")
    session.look()
    _check_function(session, rec, fn)
    _check_globals(session, rec, fn)
    _check_options(rec, fn, kwargs)
    for hook in fn.pre_run_hooks:
        hook(*args, **kwargs)
    kwargs["debug"] = bool(kwargs.get("debug") or fn.debug)
    kwargs["instrumentation_mode"] = ""
    if kwargs["debug"]:
        rec.find("debug-kernel", "unsupported", f"kernel {fn.__name__} is compiled with debug=True")
    kernels, _, _, backend, binder = fn.device_caches[driver.active.get_current_device()]
    session.binding = True
    try:
        bound, specialization, options = binder(*args, **kwargs)
    finally:
        session.binding = False
    # As text, because Triton's own key takes True and 1 for the same.
    key = (id(fn), repr(specialization), repr(options))
    if key not in session.specialised:
        job = Compile(fn, *fn._pack_args(backend, kwargs, bound, specialization, options))
        session.specialised[key] = job, kernel_spec(rec, job)
    job, spec = session.specialised[key]
    kernels.setdefault(str(key[1:]), CompiledKernel(session, spec, job, record_launch))  # as after a real launch
    if not warmup:
        values = list(bound.values())
        record_launch(rec, spec, list(job.signature.values()), values, grid(bound) if callable(grid) else grid)
    return CompiledKernel(session, spec, job, record_launch)


def _check_function(session: Session, rec: Recorder, fn: JITFunction) -> None:
    if fn.is_gluon():
        rec.find("gluon", "unsupported", f"kernel {fn.__name__} is written in Gluon")
        raise TraceEnd
    if not session.source.is_kernel(fn.__name__, fn._src):
        rec.find(
            "kernel-not-in-file",
            "untraceable",
            f"kernel {fn.__name__} cannot be cut out of the file as it stands",
            help="Define kernels with @triton.jit at the top level of the file.",
        )
        raise TraceEnd


def _check_globals(session: Session, rec: Recorder, fn: JITFunction) -> None:
    """The kernel is compiled from the file's text, so the globals that it reads must have the values written there."""
    fn.cache_key  # noqa: B018  (Triton looks up the globals here)
    for (name, _), (value, scope) in fn.used_global_vals.items():
        if scope.get(name) != value:
            raise RuntimeError(
                f"Global variable {name} has changed since we compiled this kernel, from {value} to {scope.get(name)}"
            )
        written = session.source.literal(name)
        actual = getattr(value, "value", value)
        if written is not NOT_LITERAL and (written != actual or type(written) is not type(actual)):
            rec.find("kernel-global", "proof", f"kernel {fn.__name__} reads {name}, which the file changes at run time")


def _check_options(rec: Recorder, fn: JITFunction, kwargs: dict[str, Any]) -> None:
    parameters = {p.name for p in fn.params}
    for name, value in kwargs.items():
        if name in parameters or name in OPTIONS or value is None or (name == "debug" and not value):
            continue
        if name not in _known_options(fn):
            raise KeyError(f"Keyword argument {name} was specified but unrecognised")
        rec.find(
            "forbidden-launch-option",
            "proof",
            f"launch option `{name}` of kernel {fn.__name__} is not allowed",
            help=f"Allowed are {', '.join(OPTIONS)}.",
        )


def _known_options(fn: JITFunction) -> Any:
    backend = fn.device_caches[driver.active.get_current_device()][3]
    return backend.parse_options({}).__dict__


def record_launch(rec: Recorder, spec: dict[str, Any], types: list[Any], values: list[Any], grid: Any) -> None:
    """Writes the launch down; a grid without programs is no launch, as in Triton.

    `types` are Triton's types of the kernel's parameters (nested for tuples), `values` the arguments for them.
    """
    if callable(grid):
        grid = grid(dict(zip((p["name"] for p in spec["params"]), values, strict=False)))
    # By length and index, as Triton does: a class of the file's own may iterate over something else.
    sizes = [_integer(grid[i]) for i in range(min(max(len(grid), 1), 3))]
    sizes += [1] * (3 - len(sizes))
    args = runtime_args(rec, spec, types, values)
    if any(s < 0 or s >= 2**32 for s in sizes):
        raise ValueError(f"grid {tuple(sizes)} is out of range")
    if 0 in sizes:
        return
    rec.step({"op": "launch", "kernel": rec.kernel(spec), "grid": sizes, "args": args})
    for value in _leaves(values):
        if isinstance(value, torch.Tensor):
            rec.written(value)


# specialisation -----------------------------------------------------------------------------------------------------


def kernel_spec(rec: Recorder, job: Compile) -> dict[str, Any]:
    """`tilewright_contract::KernelSpec` of what Triton bound."""
    o = job.options
    params: list[dict[str, str]] = []
    for name, ty in job.signature.items():
        _flatten_type(rec, name, ty, params)
    options: dict[str, Any] = {
        "num_warps": _integer(o.num_warps),
        "num_stages": _integer(o.num_stages),
        "num_ctas": _integer(o.num_ctas),
        "enable_fp_fusion": bool(o.enable_fp_fusion),
        "launch_cooperative_grid": bool(o.launch_cooperative_grid),
        "launch_pdl": bool(getattr(o, "launch_pdl", False)),
    }
    if getattr(o, "maxnreg", None) is not None:
        options["maxnreg"] = _integer(o.maxnreg)
    return {
        "function": job.fn.__name__,
        "params": params,
        "constexprs": {_path(path): constexpr(rec, value) for path, value in job.constexprs.items()},
        "attrs": {_path(path): [[str(a), _integer(v)] for a, v in pairs] for path, pairs in job.attrs.items()},
        "options": options,
    }


def _integer(value: Any) -> int:
    """An integer as Triton's launcher takes it; raises `TypeError` for anything else."""
    return int(operator.index(value))


def _path(path: tuple[int, ...]) -> str:
    return ".".join(str(i) for i in path)


def _flatten_type(rec: Recorder, name: str, ty: Any, params: list[dict[str, str]]) -> None:
    if isinstance(ty, tuple):
        if hasattr(ty, "_fields"):
            rec.find("named-tuple", "unsupported", f"kernel argument {name} is a named tuple")
            raise TraceEnd
        for i, item in enumerate(ty):
            _flatten_type(rec, f"{name}.{i}", item, params)
    else:
        params.append({"name": name, "ty": str(ty)})


def constexpr(rec: Recorder, value: Any) -> dict[str, Any]:
    """A compile-time value as `tilewright_contract::Constexpr`.

    By its exact type: Triton computes with the object itself, and a class of the file's own may say what that gives.
    """
    if type(value) is tl.constexpr:
        return constexpr(rec, value.value)
    if value is None:
        return {"kind": "none"}
    if type(value) in _NUMPY_SCALARS:
        return constexpr(rec, value.item())
    if isinstance(value, int) and not -(2**63) <= value < 2**64 and _is_plain(value):
        return {"kind": "integer", "value": hex(value)}
    if isinstance(value, (bool, int, float)) and _is_plain(value):
        return {"kind": "number", "value": number(value)}
    if isinstance(value, str) and _is_plain(value):
        return {"kind": "str", "value": str(value)}
    if isinstance(value, tl.dtype) and (name := _dtype_name(value)) is not None:
        return {"kind": "dtype", "value": name}
    if type(value) is JITFunction:
        _check_function(rec.session, rec, value)
        return {"kind": "function", "value": value.__name__}
    if type(value) in (tuple, list, tl.tuple):
        return {"kind": "tuple", "items": [constexpr(rec, item) for item in value]}
    rec.find("constexpr-kind", "unsupported", f"a constexpr of type {type(value).__name__} is not supported")
    raise TraceEnd


def _dtype_name(value: tl.dtype) -> str | None:
    """Triton's name of a dtype, or of a pointer to one, that is as Triton makes it."""
    if type(value) is tl.pointer_type:
        plain = vars(tl.pointer_type(value.element_ty)) == vars(value)
        name = _dtype_name(value.element_ty)
        return f"*{name}" if plain and name is not None else None
    plain = type(value) is tl.dtype and value.name in _DTYPES
    return value.name if plain and vars(tl.dtype(value.name)) == vars(value) else None


def _is_plain(value: Any) -> bool:
    """Whether a number or text does in a kernel what its value does: members of an enumeration without operators do."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return False  # half a character: such a text cannot leave this process
    own = [cls for cls in type(value).__mro__ if cls not in _PLAIN]
    if not own:
        return True
    names = {name for cls in own for name in vars(cls) if name.startswith("__")}
    return isinstance(value, enum.Enum) and names <= _ENUM_NAMES


# arguments ----------------------------------------------------------------------------------------------------------


def _leaves(values: Any) -> list[Any]:
    if isinstance(values, (tuple, list, tl.tuple)):
        return [leaf for value in values for leaf in _leaves(value)]
    if isinstance(values, TensorDescriptor):
        return [values.base]
    if isinstance(values, TensorWrapper):
        return [values.base]
    return [values]


def runtime_args(rec: Recorder, spec: dict[str, Any], types: list[Any], values: list[Any]) -> list[dict[str, Any]]:
    """The launch's arguments without its constexprs."""
    if len(types) != len(values):
        raise TypeError(f"kernel {spec['function']} takes {len(types)} arguments, but {len(values)} were given")
    flat: list[tuple[str, Any]] = []
    for ty, value in zip(types, values, strict=True):
        _flatten_value(ty, value, flat)
    return [argument(rec, position, ty, value) for position, (ty, value) in enumerate(flat) if ty != "constexpr"]


def _flatten_value(ty: Any, value: Any, flat: list[tuple[str, Any]]) -> None:
    if isinstance(ty, tuple):
        for inner, item in zip(ty, value, strict=True):
            _flatten_value(inner, item, flat)
    else:
        flat.append((str(ty), value))


def argument(rec: Recorder, position: int, ty: str, value: Any) -> dict[str, Any]:
    """One run-time argument as `tilewright_contract::Arg`."""
    if isinstance(value, TensorDescriptor):
        return _descriptor(rec, position, value)
    if isinstance(value, TensorWrapper):
        value = value.base
    if isinstance(value, torch.Tensor):
        _on_device(position, value)
        if ty.startswith("*"):
            view_offset = value.storage_offset() * value.element_size()
            return {"kind": "pointer", "buffer": rec.buffer(value), "offset": int(view_offset)}
    if hasattr(value, "data_ptr"):
        rec.find(
            "foreign-pointer", "untraceable", f"kernel argument {position} is a {type(value).__name__}, not a tensor"
        )
        raise TraceEnd
    if isinstance(value, int) and not isinstance(value, bool):
        if value in rec.seeds:
            return rec.seeds[value]
        pointer = rec.pointer_at(value) if value > 2**40 else None
        if pointer is not None:
            return pointer
    if type(value) in _NUMPY_SCALARS:
        value = value.item()
    return {"kind": "scalar", "value": number(value)}


def _on_device(position: int, tensor: torch.Tensor) -> None:
    if tensor.device.type != "cuda":
        raise ValueError(
            f"Pointer argument (at {position}) cannot be accessed from Triton ({tensor.device.type} tensor?)"
        )


def _descriptor(rec: Recorder, position: int, value: TensorDescriptor) -> dict[str, Any]:
    _on_device(position, value.base)
    base = rec.ref(value.base)
    tensor = {**base, "shape": [int(n) for n in value.shape], "strides": [int(n) for n in value.strides]}
    rec.check_fits({k: v for k, v in tensor.items() if k != "buffer"}, storage_of(value.base).nbytes())
    return {
        "kind": "descriptor",
        "tensor": tensor,
        "block_shape": [int(n) for n in value.block_shape],
        "padding": str(value.padding),
    }
