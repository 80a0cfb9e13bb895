"""Launches: bound and specialised by Triton's own code, compiled to Triton IR, run by the emulator."""

from __future__ import annotations

import array
import inspect
import operator
import warnings
from typing import TYPE_CHECKING, Any

import torch
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import ASTSource
from triton.runtime.jit import JITFunction, TensorWrapper, compute_cache_key
from triton.tools.tensor_descriptor import TensorDescriptor

from tilewright import _core
from tilewright.cell.make_ir import make_ir

from .errors import KernelFault, KernelFaultWarning, Unsupported
from .storage import memory, memory_at

if TYPE_CHECKING:
    from .context import Emulation

_GRID_LIMITS = (2**31 - 1, 65_535, 65_535)
_ABSENT = object()
_ADDRESSES = (torch.int64, torch.uint64)


def run(session: Emulation, fn: JITFunction, args: tuple[Any, ...], grid: Any, warmup: bool, kwargs: Any) -> Kernel:
    """Stands for `JITFunction.run`."""
    __tracebackhide__ = True
    kwargs["debug"] = bool(kwargs.get("debug") or fn.debug)
    kwargs["instrumentation_mode"] = ""
    for hook in fn.pre_run_hooks:
        hook(*args, **kwargs)
    with torch._C.DisableTorchFunction():
        kernel, bound = specialise(session, fn, args, kwargs)
    if not warmup:
        kernel.launch(session, grid(bound) if callable(grid) else grid, list(bound.values()))
    return kernel


def specialise(session: Emulation, fn: JITFunction, args: tuple[Any, ...], kwargs: Any) -> tuple[Kernel, dict]:
    """The kernel for these arguments, compiled if it is new, and all its arguments by name."""
    if fn.is_gluon():
        raise Unsupported(fn.__name__, _file(fn), "Gluon", 0, "only kernels in the Triton language are emulated")
    kernels, _, target, backend, binder = fn.device_caches[session.device]
    bound, specialization, options = binder(*args, **kwargs)
    key = compute_cache_key({}, specialization, options)
    kernel = kernels.get(key)
    if kernel is None:
        job = fn._pack_args(backend, kwargs, bound, specialization, options)
        kernel = kernels[key] = Kernel(fn, target, *job)
    for (name, _), (value, scope) in fn.used_global_vals.items():
        if scope.get(name, _ABSENT) != value:
            raise RuntimeError(
                f"Global variable {name} has changed since we compiled this kernel, from {value} to {scope.get(name)}"
            )
    return kernel, bound


class Kernel:
    """A specialised kernel. Stands for `triton.compiler.CompiledKernel`."""

    def __init__(
        self, fn: JITFunction, target: GPUTarget, options: Any, signature: dict[str, Any], constexprs: Any, attrs: Any
    ) -> None:
        self.name = fn.__name__
        self.file = _file(fn)
        self._fn, self._target, self._options, self._signature = fn, target, options, signature
        fn.cache_key  # noqa: B018  (Triton looks up the globals that the kernel reads here)
        self._source = ASTSource(fn, signature, constexprs, attrs)
        self.ttir, entry = make_ir(self._source, options, target)
        self._types = list(signature.values())
        self._refused: Unsupported | None = None
        try:
            self._native = _core.Emulated(self.ttir, entry)
        except NotImplementedError as error:
            self._refused = Unsupported(self.name, self.file, *error.args)
        except ValueError as error:
            self._refused = Unsupported(self.name, self.file, "Triton IR", 0, str(error))

    def __getitem__(self, grid: Any) -> Any:
        from .context import current

        def runner(*args: Any, stream: Any = None) -> None:
            self.launch(current(), grid, list(args))

        return runner

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        from .figures import figure

        return figure(self, name)

    def launch(self, session: Emulation, grid: Any, values: list[Any]) -> None:
        """Runs all programs of a grid. `values` are all arguments, those that are constants included."""
        __tracebackhide__ = True
        sizes = tuple(operator.index(size) for size in grid)[:3]
        sizes += (1,) * (3 - len(sizes))
        if any(size < 0 or size > limit for size, limit in zip(sizes, _GRID_LIMITS, strict=True)):
            raise RuntimeError(f"kernel {self.name}: a GPU takes no grid of {sizes}: the limits are {_GRID_LIMITS}")
        if 0 in sizes:
            return
        if self._refused is not None:
            session.note_unsupported(self._refused)
            raise self._refused.with_traceback(None)
        with torch._C.DisableTorchFunction():
            arguments = Arguments(session, [name for name, _ in self._signature.items()], self._types, values)
            self._run(session, sizes, arguments)

    def _run(self, session: Emulation, grid: tuple[int, ...], arguments: Arguments) -> None:
        __tracebackhide__ = True
        buffers = arguments.buffers()
        result = self._native.launch(grid, buffers, arguments.values, session.options)
        session.note_launch(self, result["report"])
        for finding in result["faults"] + result["defects"]:
            self._found(session, grid, finding)

    def _found(self, session: Emulation, grid: tuple[int, ...], finding: dict[str, Any]) -> None:
        __tracebackhide__ = True
        if finding["kind"] in ("malformed", "arguments"):
            raise RuntimeError(f"kernel {self.name}: {finding['message']}")
        if finding["kind"] == "unsupported":
            refused = Unsupported(self.name, self.file, finding["op"], finding["line"], finding["message"])
            session.note_unsupported(refused)
            raise refused
        fault = KernelFault(self.name, self.file, finding, grid)
        session.note_fault(fault)
        if session.on_fault == "raise" or fault.kind in ("timeout", "deadlock"):
            raise fault
        if session.on_fault == "warn":
            warnings.warn(str(fault), KernelFaultWarning, stacklevel=2)


class Arguments:
    """The run-time arguments of a launch, and the storages behind them: one buffer each, however many share it."""

    def __init__(self, session: Emulation, names: list[str], types: list[Any], values: list[Any]) -> None:
        if len(types) != len(values):
            raise TypeError(f"the kernel takes {len(types)} arguments, but {len(values)} were given")
        self._session = session
        self._index: dict[int, int] = {}
        self._storages: list[tuple[list[str], torch.Tensor, torch.UntypedStorage]] = []
        self.values: list[tuple[Any, ...]] = []
        for name, ty, value in zip(names, types, values, strict=True):
            self._add(name, ty, value)

    def buffers(self) -> list[tuple[str, Any, Any, int | None, bool]]:
        """What the emulator takes for each storage: those of tensor arguments, and those that numbers point to."""
        storages = self._session.storages
        known = storages.exposed()
        result = []
        for key, (names, tensor, storage) in zip(self._index, self._storages, strict=True):
            label = "/".join(dict.fromkeys(names))
            numbers = bool(known) and tensor.dtype in _ADDRESSES
            address = known[key][0] if key in known else None
            facts = storages.find(tensor)
            result.append((label, memory(storage), facts.written if facts else None, address, numbers))
        others = {key: place for key, place in known.items() if key not in self._index}
        for key in self._pointed(others, [buffer for _, buffer, _, _, numbers in result if numbers]):
            address, length = others[key]
            label = f"the tensor at {address:#x}"
            result.append((label, memory_at(address, length), storages.written(key), address, False))
        return result

    def _pointed(self, places: dict[int, tuple[int, int]], buffers: list[memoryview]) -> list[int]:
        """Which storages numbers point to: those in arguments and those in tensors of integers."""
        if not places:
            return []
        numbers = [value[1] for value in self.values if value[0] == "int" and 0 < value[1] < 2**63]
        buffers = [*buffers, memoryview(array.array("q", numbers)).cast("B")]
        keys, ranges = list(places), list(places.values())
        return [keys[at] for at in sorted({at for buffer in buffers for at in _core.pointed(buffer, ranges)})]

    def _add(self, name: str, ty: Any, value: Any) -> None:
        if isinstance(ty, tuple):
            fields = getattr(ty, "_fields", range(len(ty)))
            for field, inner, item in zip(fields, ty, value, strict=True):
                self._add(f"{name}.{field}", inner, item)
        elif ty != "constexpr":
            self.values.append(self._argument(name, str(ty), value))

    def _argument(self, name: str, ty: str, value: Any) -> tuple[Any, ...]:
        if isinstance(value, TensorDescriptor):
            buffer, offset = self._place(name, value.base)
            shape, strides = [int(n) for n in value.shape], [int(n) for n in value.strides]
            return "descriptor", buffer, offset, shape, strides, value.padding == "nan"
        if isinstance(value, TensorWrapper):
            value = value.base
        if isinstance(value, torch.Tensor) and ty.startswith("*"):
            return "pointer", *self._place(name, value)
        if hasattr(value, "data_ptr"):
            raise TypeError(f"argument {name} is a {type(value).__name__}; pointers must be torch tensors")
        if hasattr(value, "item"):
            value = value.item()
        if isinstance(value, float):
            return "float", value
        return ("null",) if ty.startswith("*") and not value else ("int", int(value))

    def _place(self, name: str, tensor: torch.Tensor) -> tuple[int, int]:
        """Index of the tensor's storage, and the byte offset of its first element there."""
        if tensor.device.type != "cpu":
            raise ValueError(f"argument {name} is on {tensor.device}: the emulator takes tensors on the CPU")
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key not in self._index:
            self._index[key] = len(self._storages)
            self._storages.append(([], tensor, storage))
        index = self._index[key]
        self._storages[index][0].append(name)
        return index, tensor.storage_offset() * tensor.element_size()


def _file(fn: JITFunction) -> str:
    return inspect.getsourcefile(fn.fn) or fn.fn.__code__.co_filename
