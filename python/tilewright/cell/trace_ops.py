"""Every torch op that a plan can hold, classed in one table with the reason for its class.

An op that is not in `TABLE` is `compute`: evidence that torch does the work instead of a kernel. Composite ops are
not listed; the tracer takes them apart and sees the ops they are made of.

| class | becomes |
|---|---|
| metadata | nothing: the result looks at the same storage |
| allocation | a scratch buffer |
| copy, cast | `copy` steps |
| fill | `fill`, `iota` or `literal` steps |
| random | a `random` step |
| read | the file reads data: untraceable |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from .trace_record import LITERAL_LIMIT, Recorder, number, storage_of

Args = dict[str, Any]
Handler = Callable[[Recorder, Args, Any], None]


@dataclass(frozen=True)
class Op:
    """One row of the table."""

    kind: str
    reason: str
    handler: Handler | None = None


def bind(func: torch._ops.OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Args:
    """Arguments of a call by their names in the op's schema, defaults filled in."""
    bound = {}
    for i, argument in enumerate(func._schema.arguments):
        if i < len(args) and not argument.kwarg_only:
            bound[argument.name] = args[i]
        elif argument.name in kwargs:
            bound[argument.name] = kwargs[argument.name]
        else:
            bound[argument.name] = argument.default_value
    return bound


# handlers -----------------------------------------------------------------------------------------------------------


def _copy_result(rec: Recorder, a: Args, out: Any) -> None:
    rec.copy(a["self"], out)


def _copy_into(rec: Recorder, a: Args, out: Any) -> None:
    rec.copy(a["src"], a["self"])


def _functional_copy(rec: Recorder, a: Args, out: Any) -> None:
    rec.copy(a["src"], out)


def _view_or_copy(rec: Recorder, a: Args, out: Any) -> None:
    """`reshape` and the like: a view where the layout allows it, else a copy."""
    source = a["self"]
    if storage_of(source)._cdata != storage_of(out)._cdata:
        rec.copy(source, out)


def _fill_with(value: Any) -> Handler:
    def handler(rec: Recorder, a: Args, out: Any) -> None:
        rec.fill(out, value)

    return handler


def _fill_argument(name: str) -> Handler:
    def handler(rec: Recorder, a: Args, out: Any) -> None:
        value = a[name]
        if not isinstance(value, torch.Tensor):
            rec.fill(out, value)
        else:
            rec.copy(value, out)

    return handler


def _arange(rec: Recorder, a: Args, out: Any) -> None:
    start = 0 if a.get("start") is None else a["start"]
    step = 1 if a.get("step") is None else a["step"]
    rec.iota(out, start, step)


def _cat(rec: Recorder, a: Args, out: Any) -> None:
    dim, at = a["dim"] or 0, 0
    for tensor in a["tensors"]:
        if tensor.dim() == 1 and tensor.numel() == 0:
            continue  # torch's legacy rule: an empty vector is skipped
        extent = tensor.shape[dim]
        rec.copy(tensor, out.narrow(dim, at, extent))
        at += extent


def _stack(rec: Recorder, a: Args, out: Any) -> None:
    for i, tensor in enumerate(a["tensors"]):
        rec.copy(tensor, out.select(a["dim"] or 0, i))


def _repeat(rec: Recorder, a: Args, out: Any) -> None:
    """Each repeated dimension becomes (times, extent), filled by one broadcast copy."""
    source, times = a["self"], list(a["repeats"])
    source = source.reshape([1] * (len(times) - source.dim()) + list(source.shape))
    shape = [n for pair in zip(times, source.shape, strict=True) for n in pair]
    folded = source.reshape([n for extent in source.shape for n in (1, extent)])
    rec.copy(folded, out.view(shape))


def _pad(rec: Recorder, a: Args, out: Any) -> None:
    """Fills with the padding value, then copies the body (negative padding crops)."""
    source, pad = a["self"], a["pad"]
    rec.fill(out, 0 if a["value"] is None else a["value"])
    inner = out
    for i in range(len(pad) // 2):
        dim = source.dim() - 1 - i
        before, after = pad[2 * i], pad[2 * i + 1]
        start = max(-before, 0)
        extent = source.shape[dim] - start - max(-after, 0)
        source = source.narrow(dim, start, extent)
        inner = inner.narrow(dim, max(before, 0), extent)
    rec.copy(source, inner)


def _eye(rec: Recorder, a: Args, out: Any) -> None:
    rec.fill(out, 0)
    rec.fill(out.diagonal(), 1)


def _foreach_copy(rec: Recorder, a: Args, out: Any) -> None:
    for dst, src in zip(a["self"], a["src"], strict=True):
        rec.copy(src, dst)


def _foreach_zero(rec: Recorder, a: Args, out: Any) -> None:
    for dst in a["self"]:
        rec.fill(dst, 0)


def _uniform(rec: Recorder, a: Args, out: Any) -> None:
    rec.random(out, {"kind": "uniform", "low": float(a.get("from", 0.0)), "high": float(a.get("to", 1.0))})


def _normal(rec: Recorder, a: Args, out: Any) -> None:
    rec.random(out, {"kind": "normal", "mean": float(a.get("mean", 0.0)), "std": float(a.get("std", 1.0))})


def _randint(rec: Recorder, a: Args, out: Any) -> None:
    low = a.get("low", a.get("from", 0))
    high = a.get("high", a.get("to"))
    if high is None:
        high = {torch.uint8: 256, torch.int8: 128, torch.int16: 2**15, torch.int32: 2**31}.get(out.dtype, 2**63 - 1)
    rec.random(out, {"kind": "randint", "low": number(low or 0), "high": number(high)})


def _bernoulli(rec: Recorder, a: Args, out: Any) -> None:
    if not isinstance(a["p"], (int, float)):
        rec.find("torch-compute", "proof", "aten.bernoulli with a tensor of probabilities runs on torch")
        return
    rec.random(out, {"kind": "bernoulli", "p": float(a["p"])})


def literal_of(rec: Recorder, fake: torch.Tensor, real: torch.Tensor) -> None:
    """Records a tensor whose numbers are known from the file."""
    if real.numel() > LITERAL_LIMIT:
        rec.literal(fake, [0] * real.numel())
        return
    with torch.utils._python_dispatch._disable_current_modes():
        values = real.detach().reshape(-1).tolist()
    rec.literal(fake, values)


# the table ----------------------------------------------------------------------------------------------------------

TABLE: dict[str, Op] = {}


def _rows(kind: str, reason: str, names: str, handler: Handler | None = None) -> None:
    for name in names.split():
        namespace, _, op = name.rpartition("::")
        TABLE[f"{namespace or 'aten'}::{op}"] = Op(kind, reason, handler)


_rows(
    "metadata",
    "a view: only sizes, strides and the offset change",
    """view _unsafe_view _reshape_alias t transpose permute expand slice select unsqueeze squeeze as_strided alias
    detach unbind split split_with_sizes diagonal unfold view_as_real view_as_complex narrow movedim chunk
    swapaxes swapdims expand_as view_as unflatten flatten numpy_T tensor_split hsplit vsplit dsplit
    lift set_ detach_ transpose_ t_ squeeze_ unsqueeze_ as_strided_ swapaxes_ swapdims_ _nested_view_from_buffer
    prims::broadcast_in_dim prims::split_dim prims::collapse_view prims::squeeze prims::transpose prims::as_strided
    prims::slice_in_dim prims::view_of""",
)
_rows(
    "metadata",
    "asks about the tensor, never about its elements",
    """prim::device size stride numel dim storage_offset is_contiguous sym_size sym_stride sym_numel sym_storage_offset
    is_pinned is_same_size is_complex is_floating_point is_signed is_inference _is_zerotensor is_conj is_neg
    requires_grad_ retain_grad set_data data _version output_nr is_leaf record_stream _has_same_storage_numel
    _assert_tensor_metadata _debug_has_internal_overlap rename rename_ names prim::layout promote_types result_type
    can_cast _shape_as_tensor profiler::_record_function_enter profiler::_record_function_enter_new
    profiler::_record_function_exit""",
)
_rows(
    "metadata",
    "shares memory where it can and otherwise moves elements unchanged",
    "reshape contiguous ravel",
    _view_or_copy,
)
_rows(
    "allocation",
    "new memory, not written",
    """empty empty_like empty_strided empty_permuted new_empty new_empty_strided resize_ resize_as_ prims::empty_strided
    prims::empty_permuted""",
)
_rows(
    "fill",
    "one known number everywhere",
    "zeros zeros_like new_zeros zero_ zero _efficientzerotensor",
    _fill_with(0),
)
_rows("fill", "one known number everywhere", "ones ones_like new_ones", _fill_with(1))
_rows("fill", "one known number everywhere", "full full_like new_full", _fill_argument("fill_value"))
_rows("fill", "one known number everywhere", "fill_ fill", _fill_argument("value"))
_rows("fill", "one known number", "scalar_tensor", _fill_argument("s"))
_rows("fill", "numbers known from the arguments alone", "arange", _arange)
_rows("fill", "numbers known from the arguments alone", "eye", _eye)
_rows("fill", "one known number everywhere", "_foreach_zero_", _foreach_zero)
_rows("fill", "numbers that are written in the file", "lift_fresh lift_fresh_copy")
_rows("copy", "moves elements unchanged", "clone", _copy_result)
_rows("copy", "moves elements unchanged", "alias_copy detach_copy", _copy_result)
_rows("copy", "moves elements, converting the dtype as torch does", "copy_", _copy_into)
_rows("copy", "moves elements, converting the dtype as torch does", "copy", _functional_copy)
_rows("copy", "moves elements unchanged", "_foreach_copy_", _foreach_copy)
_rows("copy", "joins tensors without looking at them", "cat", _cat)
_rows("copy", "joins tensors without looking at them", "stack", _stack)
_rows("copy", "repeats elements unchanged", "repeat", _repeat)
_rows("copy", "moves elements into a border of one known number", "constant_pad_nd", _pad)
_rows(
    "cast",
    "rounds to another dtype or moves to another device, no arithmetic between elements",
    "_to_copy",
    _copy_result,
)
_rows("random", "draws numbers, reads no data", "rand rand_like", _uniform)
_rows("random", "draws numbers, reads no data", "uniform_ uniform", _uniform)
_rows("random", "draws numbers, reads no data", "randn randn_like normal_", _normal)
_rows("random", "draws numbers, reads no data", "randint randint_like random_", _randint)
_rows("random", "draws numbers, reads no data", "bernoulli_", _bernoulli)
_rows(
    "read",
    "hands elements to Python",
    "_local_scalar_dense item is_nonzero equal allclose nonzero nonzero_numpy masked_select _unique2 unique_dim "
    "unique_consecutive",
)


def classify(func: Any) -> Op | None:
    """The table's row for an op, or None for compute."""
    schema = getattr(func, "_schema", None)
    if schema is None:
        return None
    return TABLE.get(schema.name)


def is_composite(func: Any) -> bool:
    """Whether the op is defined by other ops, so that those can be looked at instead."""
    if not isinstance(func, torch._ops.OpOverload):
        return False
    return torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "CompositeImplicitAutograd")
