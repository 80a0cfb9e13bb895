"""Runs of the reference: weights, a call in its own dtypes, the same call in float64, and what changed."""

from __future__ import annotations

import dataclasses
import hashlib
import math
import pickle
import random
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from tilewright.cell import constants
from tilewright.cell.oracle_problem import Case
from tilewright.cell.oracle_values import (
    contiguous_strides,
    decode,
    dtype_name,
    encode,
    raw_bytes,
    result_path,
    widened,
)

TOLERANCE: dict[torch.dtype, float] = {
    torch.float8_e4m3fn: 0.25,
    torch.float8_e5m2: 0.5,
    torch.bfloat16: 5e-2,
    torch.float16: 2e-2,
    torch.float32: 1e-4,
    torch.float64: 1e-9,
}
"""How far the reference may be from its float64 run, as rms of the difference over rms of the result. Loose: it only
separates rounding from another computation."""

NARROW = frozenset({torch.float16, torch.bfloat16, torch.float32})


def pin() -> None:
    """Set every default of torch that changes results. Repeated before each run: a problem's file may set them too."""
    torch.set_default_dtype(torch.float32)
    torch.set_float32_matmul_precision("highest")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True
    # Also fills uninitialised memory with NaN, so that a reference which reads it shows.
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.set_grad_enabled(False)


def derive(seed: int, *parts: object) -> int:
    """A seed of 63 bits for one purpose, unrelated to those for other purposes."""
    text = "/".join(str(part) for part in (seed, *parts))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") >> 1


def seed_all(seed: int) -> None:
    """Seed every generator that a problem may draw from."""
    # `torch.manual_seed` without the devices that are not there: for each it formats the stack, which took a quarter of
    # the oracle's time.
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_available():
        torch.cuda.manual_seed_all(seed)
    random.seed(seed)
    numpy.random.seed(seed % 2**32)


def _generator_states() -> list[bytes]:
    states = [torch.get_rng_state().numpy().tobytes(), repr(random.getstate()).encode()]
    states.append(pickle.dumps(numpy.random.get_state(legacy=False)))
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        states.append(torch.cuda.get_rng_state().numpy().tobytes())
    return states


@dataclass
class Weights:
    """How a module's weights come about."""

    seed: int
    """Seed of the initialisation and of the perturbation."""
    level: int
    """0: as `__init__` made them; 1: loose parameters changed; 2: buffers of one number too; 3: counters too."""
    device: str
    rule: str | None = None
    """For candidates that make their weights themselves: how fixed weights are changed while `__init__` runs."""


def build(case: Case, weights: Weights) -> torch.nn.Module:
    """A module with these weights."""
    pin()
    seed_all(weights.seed)
    with _changing(case, weights):
        model = case.build()
    pin()
    if weights.level > 0:
        perturb(model, case.loose, torch.Generator().manual_seed(derive(weights.seed, "perturb")), weights.level)
    if weights.level > 2:
        advance(model, case.counters, derive(weights.seed, "counters"))
    return model.to(weights.device)


def _changing(case: Case, weights: Weights) -> AbstractContextManager[object]:
    if weights.rule is None:
        return nullcontext()
    parameters = [digest for digest, parameter in case.fixed if parameter]
    buffers = [digest for digest, parameter in case.fixed if not parameter]
    return constants.Watch(constants.Change(weights.rule, weights.seed, parameters, buffers))


def survey(case: Case, seeds: tuple[int, int]) -> None:
    """Find the case's fixed weights and its loose parameters, by building the module under two seeds."""
    made, states = [], []
    for seed in seeds:
        pin()
        seed_all(seed)
        with constants.Watch() as watch:
            model = case.build()
        made.append(watch.made)
        states.append({name: constants.digest_of(p) for name, p in _floating(model.named_parameters())})
    case.fixed = constants.fixed(*made)
    first, second = states
    seen: set[str] = set()
    loose = set()
    for name, digest in first.items():
        if digest in seen or digest == second.get(name):
            loose.add(name)
        seen.add(digest)
    case.loose = frozenset(loose)


def _floating(named: Iterable[tuple[str, torch.Tensor]]) -> list[tuple[str, torch.Tensor]]:
    return [(name, t.data) for name, t in named if t.is_floating_point() and t.numel() > 0]


def perturb(model: torch.nn.Module, loose: frozenset[str], generator: torch.Generator, level: int) -> None:
    """Change the parameters that are named, and from level 2 persistent buffers whose elements are all equal.

    A bias of zeros, a scale of ones or an identity hides a candidate that leaves it out. Signs are kept, so that
    variances and scales stay positive; uninitialised (non-finite) parameters get small values. Buffers with a table in
    them (masks, positions, frequencies) stay: whoever computes them does the same thing.
    """
    trained = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    for name, tensor in _floating(model.named_parameters()):
        if not bool(tensor.isfinite().all()):
            tensor.copy_(0.1 * torch.randn(tensor.shape, generator=generator, dtype=torch.float32))
        elif name in loose:
            constants.vary(tensor, generator, name in trained, "var" in name)
    persistent = model.state_dict().keys()
    for name, tensor in _floating(model.named_buffers()):
        if level > 1 and name in persistent and constants.one_number(tensor):
            constants.vary(tensor, generator, positive="var" in name)


def counters(run: Run) -> frozenset[str]:
    """Names of the single integers of the state that a call changes: calls counted, as a rule."""
    kinds = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
    single = {name: value for name, value in run.before.items() if value.numel() == 1 and value.dtype in kinds}
    return frozenset(name for name, value in single.items() if not torch.equal(value, run.state[name]))


def advance(model: torch.nn.Module, names: frozenset[str], seed: int) -> None:
    """Let counters start anywhere up to a million, so that nothing can tell a trial's first calls from later ones."""
    generator = torch.Generator().manual_seed(seed)
    state = state_of(model)
    for name in sorted(names):
        exponent = 6.0 * torch.rand((), generator=generator).item()
        limit = 255 if state[name].dtype.itemsize == 1 else 10**6
        state[name].fill_(min(int(10.0**exponent), limit // 2))


@dataclass
class Run:
    """What one call did."""

    output: Any
    flats: list[torch.Tensor]
    """The input storages after the call."""
    state: dict[str, torch.Tensor]
    """The `state_dict` after the call."""
    before: dict[str, torch.Tensor]
    """Copies of the `state_dict` entries before the call."""
    drew: bool
    """Whether the call consumed random numbers."""
    asked: frozenset[torch.dtype] = frozenset()
    """Of a float64 run: the floating dtypes that the module converts to."""


def state_of(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """The tensors of a module's `state_dict`, in order."""
    return {name: value for name, value in model.state_dict().items() if isinstance(value, torch.Tensor)}


def call(model: torch.nn.Module, docs: list[Any], flats: list[torch.Tensor], seed: int) -> Run:
    """Call a module on the arguments that `docs` describe over `flats`, which it may modify."""
    before = {name: value.detach().clone() for name, value in state_of(model).items()}
    args = [decode(doc, flats) for doc in docs]
    seed_all(seed)
    generators = _generator_states()
    with torch.no_grad():
        output = model(*args)
    return Run(output, flats, state_of(model), before, _generator_states() != generators)


def call_native(model: torch.nn.Module, docs: list[Any], flats: list[torch.Tensor], seed: int, device: str) -> Run:
    """Call in the problem's own dtypes on copies of `flats`."""
    pin()
    return call(model, docs, [flat.to(device, copy=True) for flat in flats], seed)


class CannotWiden(Exception):
    """The module does something that has no counterpart in float64."""


class _Widen(TorchDispatchMode):
    """Turns conversions to a narrower floating dtype into conversions to float64, and remembers what was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: set[torch.dtype] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.aten.view.dtype:
            raise CannotWiden("the module reinterprets the bits of a tensor")
        args, kwargs = tree_map(self._dtype, (args, kwargs or {}))
        return func(*args, **kwargs)

    def _dtype(self, value: Any) -> Any:
        if not isinstance(value, torch.dtype) or not value.is_floating_point:
            return value
        self.asked.add(value)
        return torch.float64 if value in NARROW else value


def widen(model: torch.nn.Module) -> torch.nn.Module:
    """The module in float64, with the tensors it keeps as plain attributes."""
    for part in model.modules():
        for name, value in vars(part).items():
            if isinstance(value, torch.Tensor) and value.dtype in NARROW:
                setattr(part, name, value.double())
    return model.double()


def call_wide(model: torch.nn.Module, docs: list[Any], flats: list[torch.Tensor], seed: int, device: str) -> Run:
    """Call in float64 on copies of `flats`. Raises what the module raises on such arguments, or `CannotWiden`."""
    pin()
    torch.set_default_dtype(torch.float64)
    try:
        with _Widen() as mode:
            run = call(model, docs, widened([flat.to(device) for flat in flats]), seed)
        return dataclasses.replace(run, asked=frozenset(mode.asked))
    finally:
        torch.set_default_dtype(torch.float32)


def output_tensors(output: Any) -> dict[str, torch.Tensor]:
    """Tensors of an output by path, such as `output[0]`."""
    found: dict[str, torch.Tensor] = {}

    def note(tensor: torch.Tensor, path: str) -> dict[str, Any]:
        found[result_path(path)] = tensor
        return {}

    encode(output, note)
    return found


CHUNK = 1 << 22
"""Elements that are compared at a time: comparing should take no memory of its own."""


def differ(first: torch.Tensor, second: torch.Tensor, tolerance: float) -> str | None:
    """Why two results differ beyond rounding, or None. Floats by rms over the elements that are finite in both."""
    if first.shape != second.shape:
        return f"shapes {list(first.shape)} and {list(second.shape)}"
    count = first.numel()
    pairs = _parts(first, second)
    if not first.is_floating_point():
        # A tie may be broken otherwise in another precision.
        unequal = sum(int((a != b).sum()) for a, b in pairs)
        return f"{unequal} of {count} elements differ" if unequal > tolerance * count else None
    error, size, odd = _distance(pairs)
    if odd > 0.01 * max(count, 1):
        return f"{odd} of {count} elements are finite in one run only"
    if error > tolerance * size + 1e-30:
        return f"relative rms difference {error / size if size else math.inf:.2g}, more than {tolerance:g}"
    return None


def _distance(pairs: Iterable[tuple[torch.Tensor, torch.Tensor]]) -> tuple[float, float, int]:
    """Of floating tensors in parts: rms of the difference and of the second ones, over the elements that are finite in
    both, and the number of those that are finite in one alone.
    """
    error = size = 0.0
    odd = finite = 0
    for a, b in ((a.double(), b.double()) for a, b in pairs):
        difference = a - b
        squares = difference.dot(difference).item(), b.dot(b).item()
        finite += a.numel()
        if not math.isfinite(sum(squares)):
            both = a.isfinite() & b.isfinite()
            odd += int((~both & ~(a.isnan() & b.isnan()) & (a != b)).sum())
            finite -= int((~both).sum())
            squares = difference.where(both, 0.0).square().sum().item(), b.where(both, 0.0).square().sum().item()
        error, size = error + squares[0], size + squares[1]
    return math.sqrt(error / max(finite, 1)), math.sqrt(size / max(finite, 1)), odd


def nudged(flats: list[torch.Tensor], number: int, dtype: torch.dtype | None = None) -> list[torch.Tensor]:
    """Floating inputs with every element one rounding larger or smaller, of their own dtype or of `dtype`; other
    elements for each `number`.
    """
    generator = torch.Generator().manual_seed(number)

    def nudge(flat: torch.Tensor) -> torch.Tensor:
        if not flat.is_floating_point() or flat.element_size() == 1:
            return flat
        signs = torch.randint(0, 2, flat.shape, generator=generator, dtype=torch.int8).mul_(2).sub_(1).to(flat.device)
        return flat * (1 + torch.finfo(dtype or flat.dtype).eps * signs.to(flat.dtype))

    return [nudge(flat) for flat in flats]


STEADY: dict[torch.dtype, float] = {torch.bfloat16: 8e-2, torch.float16: 2e-2, torch.float32: 1e-2}
"""How far an element may be moved by float32's rounding of the inputs, relative to it or to the rms of all."""


def unsteady(native: Run, wide: Run, other: Run) -> str | None:
    """Why large values say nothing of a candidate, or None: `other` is a float64 run on inputs that are off by a
    rounding of float32. Where that decides which of two scores is taken, every order of additions has another result.
    """
    results = output_tensors(native.output), output_tensors(wide.output), output_tensors(other.output)
    for path, tensor in results[0].items():
        if (limit := STEADY.get(tensor.dtype)) is None or tensor.numel() == 0:
            continue
        rms = _distance(_parts(results[1][path], results[1][path]))[1]
        for a, b in _parts(results[1][path], results[2][path]):
            if bool(((a - b).abs() > limit * a.abs().clamp(min=rms)).any()):
                return f"{path}: rounding the inputs to float32 moves elements by more than {limit:g}"
    return None


def amplifies(native: Run, wide: Run, others: Iterable[Run]) -> bool:
    """Whether the native run is off its float64 run by no more than ten times what rounding the inputs otherwise does
    to it, as where a sum cancels. `others` are native runs on `nudged` inputs.
    """
    first, second = output_tensors(native.output), output_tensors(wide.output)
    spread = dict.fromkeys(first, 0.0)
    for other in others:
        for path, tensor in output_tensors(other.output).items():
            if path not in first or tensor.shape != first[path].shape:
                return False
            spread[path] = max(spread[path], _distance(_parts(tensor, first[path]))[0])
    return all(
        _distance(_parts(tensor, second[path]))[0] <= 10 * spread[path]
        for path, tensor in first.items()
        if tensor.is_floating_point() and differ(tensor, second[path], TOLERANCE[tensor.dtype])
    )


def _parts(first: torch.Tensor, second: torch.Tensor) -> Iterable[tuple[torch.Tensor, torch.Tensor]]:
    return zip(first.detach().reshape(-1).split(CHUNK), second.detach().reshape(-1).split(CHUNK), strict=True)


def disagreement(native: Run, wide: Run, amplified: bool = False) -> str | None:
    """Why a float64 run is not the native run with less rounding, or None. `amplified`: however much less."""
    first, second = output_tensors(native.output), output_tensors(wide.output)
    if list(first) != list(second):
        return "the float64 run returns another structure"
    for path, tensor in first.items():
        other = second[path]
        if tensor.is_floating_point() != other.is_floating_point():
            return f"{path} has dtype {other.dtype} in the float64 run"
        if tensor.is_floating_point() and other.dtype != torch.float64:
            return f"{path} has dtype {other.dtype} in the float64 run: the module converts inside"
        if not tensor.is_floating_point():
            continue
        for asked in wide.asked:
            # A lower precision inside is part of what the problem asks for.
            if torch.finfo(asked).eps > torch.finfo(tensor.dtype).eps:
                return f"the module converts to {str(asked).removeprefix('torch.')} inside"
        if not amplified and (reason := differ(tensor, other, TOLERANCE[tensor.dtype])):
            return f"{path}: native and float64 runs differ: {reason}"
    return None


def all_finite(run: Run) -> bool:
    """Whether every floating element of the output is finite."""
    return all(is_finite(t) for t in output_tensors(run.output).values() if t.is_floating_point())


def vanishes(run: Run, flats: list[torch.Tensor]) -> bool:
    """Whether a floating output is zero, or rounding of zero, beside inputs of the size of `flats`."""

    def size(tensors: Iterable[torch.Tensor]) -> float:
        floats = [t for t in tensors if t.is_floating_point() and t.numel() > 0]
        return max((t.abs().max().item() for t in floats), default=0.0)

    outputs = [t for t in output_tensors(run.output).values() if t.is_floating_point() and t.numel() > 0]
    given = size(flat.double() for flat in flats if flat.is_floating_point())
    return given > 0 and any(size([t]) <= 1e-12 * given for t in outputs)


def is_finite(tensor: torch.Tensor) -> bool:
    """Whether every element is finite. In one pass: extremes are NaN where an element is."""
    if tensor.numel() == 0:
        return True
    low, high = (tensor.float() if tensor.element_size() == 1 else tensor).aminmax()
    return math.isfinite(low.item()) and math.isfinite(high.item())


def same_bytes(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Whether two tensors are equal in shape, dtype and every bit."""
    if first.shape != second.shape or first.dtype != second.dtype:
        return False
    return equal_bits(raw_bytes(first.to(second.device)), raw_bytes(second))


def equal_bits(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Whether two flat tensors of bytes are equal."""
    if first.numel() != second.numel():
        return False
    if not first.is_cuda:
        return torch.equal(first, second)
    # By words where they are whole and aligned: a comparison on a GPU makes a bool for each element.
    words = all(t.numel() % 8 == 0 and t.data_ptr() % 8 == 0 and t.storage_offset() % 8 == 0 for t in (first, second))
    pairs = ((t.view(torch.int64) if words else t).split(8 * CHUNK) for t in (first, second))
    return all(torch.equal(a, b) for a, b in zip(*pairs, strict=True))


def _overlaps_itself(tensor: torch.Tensor) -> bool:
    """Whether several elements may be one place in memory, as after `expand`."""
    axes = sorted((stride, size) for stride, size in zip(tensor.stride(), tensor.shape, strict=True) if size > 1)
    reach = 1
    for stride, size in axes:
        if stride < reach:
            return tensor.numel() > 0
        reach = stride * size
    return False


def describe_expected(
    native: Run,
    wide: Run | None,
    flats: list[torch.Tensor],
    copy_only: dict[str, bool],
    write: Callable[[torch.Tensor], dict[str, int]],
) -> dict[str, Any]:
    """The contract's `Expected` for a call on the input storages `flats`; `write` keeps a tensor."""
    wide_outputs = output_tensors(wide.output) if wide else {}
    owners = {flat.untyped_storage()._cdata: f"input[{i}]" for i, flat in enumerate(native.flats)}
    owners |= {value.untyped_storage()._cdata: f"state.{name}" for name, value in native.state.items()}
    tensors: list[dict[str, Any]] = []

    def add(path: str, tensor: torch.Tensor, other: torch.Tensor | None, alias: str | None, moved: bool) -> None:
        tensors.append(
            {
                "path": path,
                "dtype": dtype_name(tensor),
                "shape": list(tensor.shape),
                "native": write(tensor),
                "float64": write(other) if other is not None and tensor.is_floating_point() else None,
                "alias": alias,
                "copy_only": moved,
            }
        )

    def output(tensor: torch.Tensor, path: str) -> dict[str, Any]:
        path = result_path(path)
        alias = owners.get(tensor.untyped_storage()._cdata)
        if alias is None and _overlaps_itself(tensor):
            alias = path
        owners.setdefault(tensor.untyped_storage()._cdata, path)
        add(path, tensor, wide_outputs.get(path), alias, copy_only.get(path, False))
        last = tensors[-1]
        view = {"dtype": last["dtype"], "shape": last["shape"], "strides": contiguous_strides(last["shape"])}
        return {"buffer": len(tensors) - 1, **view, "offset": 0}

    document = encode(native.output, output)
    for i, (before, after) in enumerate(zip(flats, native.flats, strict=True)):
        if not same_bytes(before, after):
            add(f"input[{i}]", after, wide.flats[i] if wide else None, None, False)
    for name, after in native.state.items():
        before = native.before.get(name)
        if before is None or not same_bytes(before, after):
            add(f"state.{name}", after, wide.state.get(name) if wide else None, None, False)
    return {"output": document, "tensors": tensors}
