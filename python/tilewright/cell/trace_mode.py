"""The fake tensor mode that records: what it sees is seen in its own dispatch, below every mode a file can push."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch._library.custom_ops import OPDEFS
from torch._library.utils import is_builtin
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils import _pytree as pytree

from .trace_ops import Op, bind, classify, is_composite, literal_of
from .trace_record import LITERAL_LIMIT, Recorder, storage_of
from .trace_seal import sealed

if TYPE_CHECKING:
    from .trace import Session

_DEVICE = torch.ops.prim.device.default
_LIFTS = ("aten::lift_fresh", "aten::lift_fresh_copy", "aten::lift")


class RecordingMode(FakeTensorMode):
    """Fake tensors whose ops become steps of `session.rec` while `forward` runs."""

    # CUDA is claimed to be available, but no device may be initialised.
    avoid_device_init = True

    def __init__(self, session: Session) -> None:
        super().__init__(allow_non_fake_inputs=True)
        # Every fake tensor knows its mode, so the mode must not show the session.
        self._dispatcher = sealed(Dispatcher(session, self).dispatch)

    def dispatch(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self._dispatcher(func, types, args, kwargs)


class Dispatcher:
    """Looks at each op before and after fake tensors are made of it."""

    def __init__(self, session: Session, mode: RecordingMode) -> None:
        self._session, self._mode = session, mode
        self._plain = super(RecordingMode, mode).dispatch
        self._inside = False

    def dispatch(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        kwargs = kwargs or {}
        if self._inside or func is _DEVICE:
            return self._plain(func, types, args, kwargs)
        with torch._C.DisableTorchFunction():
            return self._outermost(func, types, args, kwargs)

    def _outermost(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        session = self._session
        rec = session.rec
        session.look()
        row, custom, composite = _looked_up(func)
        if row is None:
            if custom:
                return self._custom_op(func, args, kwargs)
            if composite:
                with torch._C._EnableTorchFunction(), self._mode:
                    out = func.decompose(*args, **kwargs)
                if out is not NotImplemented:
                    return out
        if row is not None and row.kind == "read" and not _is_constant(args):
            value = rec.seed_value(args[0]) if rec is not None and isinstance(args[0], torch.Tensor) else None
            return session.reads_data(func._schema.name) if value is None else value
        if rec is not None:
            args, kwargs = self._adopt_real(rec, func, args, kwargs)
        moved = _moved_constants(args, kwargs) if _takes_no_numbers(func, row) else []
        for tensor, _ in moved:
            tensor.constant = None
        self._inside = True
        try:
            out = self._plain(func, types, args, kwargs)
            if out is not NotImplemented and rec is not None:
                self._record(rec, func, row, args, kwargs, out)
        finally:
            self._inside = False
            for tensor, constant in moved:
                tensor.constant = constant
        return out

    def _adopt_real(self, rec: Recorder, func: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
        """Real tensors (made by numpy, say) become literals: their numbers are in the file."""
        real = any(not isinstance(tensor, FakeTensor) for tensor in _tensors(args, kwargs))
        if not real or (isinstance(func, torch._ops.OpOverload) and func._schema.name in _LIFTS):
            return args, kwargs

        def adopt(value: Any) -> Any:
            if not isinstance(value, torch.Tensor) or isinstance(value, FakeTensor):
                return value
            known = rec.world.sources.get(storage_of(value)._cdata)
            converter = self._mode.fake_tensor_converter
            fake = converter.from_real_tensor(self._mode, value, make_constant=value.numel() <= LITERAL_LIMIT)
            if known is not None:
                rec.world.sources[rec.world.hold(storage_of(fake))] = known
            elif not rec.knows(fake):
                rec.adopt(fake)
                literal_of(rec, fake, value)
            return fake

        return pytree.tree_map(adopt, (args, kwargs))

    def _record(self, rec: Recorder, func: Any, row: Any, args: Any, kwargs: Any, out: Any) -> None:
        outputs = list(_tensors((out,), {}))
        shared = {storage_of(tensor)._cdata for tensor in _tensors(args, kwargs)}
        for tensor in outputs:
            if storage_of(tensor)._cdata not in shared:
                self._check_room(tensor)
                rec.adopt(tensor)
        if row is None:
            self._compute(rec, func, args, kwargs, outputs)
        elif func._schema.name in _LIFTS:
            if not isinstance(args[0], FakeTensor):
                literal_of(rec, out, args[0])
        elif row.handler is not None:
            row.handler(rec, bind(func, args, kwargs), out)

    def _check_room(self, tensor: torch.Tensor) -> None:
        """Raises what CUDA's allocator raises for more than the device has in all."""
        wanted, there = storage_of(tensor).nbytes(), self._session.card.figures().total_memory
        if wanted > there and tensor.device.type == "cuda":
            raise torch.OutOfMemoryError(
                f"CUDA out of memory. Tried to allocate {wanted / 2**30:.2f} GiB. GPU 0 has a total capacity of "
                f"{there / 2**30:.2f} GiB."
            )

    def _compute(self, rec: Recorder, func: Any, args: Any, kwargs: Any, outputs: list[torch.Tensor]) -> None:
        constants = [getattr(t, "constant", None) for t in outputs]
        if constants and all(c is not None for c in constants):
            for tensor, real in zip(outputs, constants, strict=True):
                literal_of(rec, tensor, real)
            return
        deriving = self._session.deriving
        where = f" {deriving}" if deriving else self._session.source.quote()
        help = (
            "Compute it in the backward of a torch.autograd.Function" if deriving else "Compute it in a Triton kernel"
        )
        rec.find("torch-compute", "proof", f"torch computes {func}{where}", help=f"{help}.")
        for tensor in outputs:
            rec.written(tensor)

    def _custom_op(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Runs an op of the file's own through its implementation, so that what it does is seen."""
        definition = OPDEFS.get(func._schema.name)
        with torch._C._EnableTorchFunction(), self._mode:
            if definition is not None:
                functions = definition._backend_fns
                implementation = functions.get("cuda") or functions.get(None) or definition._init_fn
                return implementation(*args, **kwargs)
            for key in ("CUDA", "CompositeExplicitAutograd", "CompositeImplicitAutograd"):
                if torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), key):
                    return func._op_dk(getattr(torch._C.DispatchKey, key), *args, **kwargs)
        raise NotImplementedError(f"{func} has no implementation for CUDA")


def _takes_no_numbers(func: Any, row: Op | None) -> bool:
    """Whether an op gives a view, a copy or memory of its own, and writes to nothing that is there already."""
    return row is not None and row.kind != "read" and not func._schema.is_mutable


def _moved_constants(args: Any, kwargs: Any) -> list[tuple[FakeTensor, torch.Tensor]]:
    """Tensors that were made from numbers of the file and moved to the device, as `Module.to` moves parameters, with
    those numbers. Torch's fake tensors would do an op on the numbers, whose result is on the host and no part of the
    tensor: not what `load_state_dict` wrote there."""
    fakes = (t for t in _tensors(args, kwargs) if isinstance(t, FakeTensor))
    return [(t, t.constant) for t in fakes if t.constant is not None and t.device.type != "cpu"]


def _is_constant(args: Any) -> bool:
    """Whether every tensor in the arguments is known number by number from the file."""
    return all(not isinstance(t, FakeTensor) or t.constant is not None for t in _tensors(args, {}))


@functools.cache
def _looked_up(func: Any) -> tuple[Op | None, bool, bool]:
    """An op's row in the table, whether it is the file's own, and whether it is made of other ops."""
    if not isinstance(func, torch._ops.OpOverload):
        return None, False, False
    row = classify(func)
    custom = row is None and not is_builtin(func)
    return row, custom, row is None and not custom and is_composite(func)


def _tensors(args: Any, kwargs: dict[str, Any]) -> Iterator[torch.Tensor]:
    """Tensors among the arguments or results of an op: they stand alone or in lists."""
    for value in (*args, *kwargs.values()):
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _tensors(value, {})
