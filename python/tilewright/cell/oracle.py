"""Handler `oracle`: inputs, weights and expected outputs of a problem, per secret seed. Trusted code.

Request: `{problem: path, seed, trials, regimes, device, max_bytes, threads, data: path, state_rule, init_seed,
init_rule}`.
Response: contract `OracleData`, whose blobs lie in the file `data`, or an error document of kind `problem` (the file
cannot be used), `too-large`, `no-device` or `unsupported`.

The default case has `trials` trials: fresh weights, then two calls on the same module with fresh inputs each, so that
state carries. Each other case has as many on a GPU, and one on a CPU. With `regimes`, the default case has one more
trial of one call for each value regime that says something: where the reference stays finite and agrees with its
float64 run.

A reference that draws random numbers gives, per trial, 16 calls on equal inputs under different forward seeds
(their input blobs are the same bytes of the file), and neither float64 results nor regimes: outputs are samples.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from tilewright.cell import gradients, oracle_regime
from tilewright.cell import oracle_reference as reference
from tilewright.cell.gradients import NotDifferentiable
from tilewright.cell.oracle_estimate import Estimate, estimate
from tilewright.cell.oracle_problem import (
    Case,
    ProblemError,
    describe,
    load,
    make_case,
    read_source,
    variants,
)
from tilewright.cell.oracle_reference import Run, Weights, derive, seed_all
from tilewright.cell.oracle_values import (
    DataFile,
    Storages,
    UnsupportedValue,
    contiguous_strides,
    dtype_name,
    encode,
    same_layout,
    widened,
)

SCHEMA = "tilewright.oracle/1"
CALLS = 2
"""Calls of a trial, so that state carries."""
LARGE = 4 << 20
"""Bytes of inputs from which on they are drawn on the GPU, where the reference runs on one."""
SMALL = 0.05
"""What part of its usual size a gradient keeps at least under an expanded cotangent: less is left of equal numbers."""
SAMPLES = 16
"""Calls of a trial of a reference that draws random numbers."""

NUDGES = 3
"""Runs on inputs that are rounded otherwise, where native and float64 runs differ."""


Layouts = dict[str, tuple[torch.dtype, torch.Size]]
"""Dtype and shape of each tensor of an output."""

_NUMBERS = "numbers that get_inputs draws are drawn once, and are the same in all calls"


class Defect(Exception):
    """The problem itself is unusable; the text says why."""


class DoesNotFit(Exception):
    """A case needs more bytes than this machine may give."""


def warm() -> None:
    """Import in the zygote what fake tensors need. Makes none: where there is a GPU that would start a CUDA thread."""
    import torch._subclasses.fake_tensor  # noqa: F401


def run(request: dict[str, Any], scratch: str) -> dict[str, Any]:
    """Handle one job; `scratch` is not used."""
    del scratch
    return answer(request, Oracle)


class Data(Protocol):
    """Where the oracle puts what it makes."""

    def write(self, tensor: torch.Tensor) -> dict[str, int]:
        """Keep expected results; the `Blob` that stands for them."""

    def share(self, tensor: torch.Tensor) -> dict[str, int]:
        """Keep inputs or weights."""


def answer(request: dict[str, Any], kind: type[Oracle], data: Data | None = None) -> dict[str, Any]:
    """The answer of an oracle of this kind, or an error document. Without `data`, what it makes goes into a file."""
    path = request["problem"]
    try:
        _check_device(request["device"])
        torch.set_num_threads(max(int(request.get("threads") or 1), 1))
        if data is not None:
            return kind(request, data).answer()
        with open(request["data"], "wb", buffering=1 << 20) as file:
            return kind(request, DataFile(file)).answer()
    except ProblemError as error:
        return _error(error.kind, error, str(error), error.line)
    except DoesNotFit as error:
        return _error("too-large", error, str(error), None)
    except UnsupportedValue as error:
        return _error("unsupported", error, f"{path}: {error}", None)


def _check_device(device: str) -> None:
    try:
        torch.empty(1, device=device)
    except Exception as error:
        raise ProblemError("no-device", f"torch cannot use {device} here: {error}") from error


def _error(kind: str, error: Exception, message: str, line: int | None) -> dict[str, Any]:
    return {"error": {"kind": kind, "type": type(error).__name__, "message": message, "line": line, "traceback": ""}}


@dataclass
class Shape:
    """What is found out about a case on its first call, and holds for its trials."""

    signature: dict[str, Any]
    level: int
    estimate: Estimate
    calls: int
    """Of a trial on the problem's own distribution, one after the other on one module."""
    outputs: Layouts
    """Of a call."""


class Oracle:
    """One request being answered."""

    def __init__(self, request: dict[str, Any], data: Data) -> None:
        self.path: str = request["problem"]
        self.seed: int = request["seed"]
        self.trials: int = max(int(request["trials"]), 1)
        self.regimes: bool = request["regimes"]
        self.device: str = request["device"]
        self.max_bytes: int = request["max_bytes"]
        self.init_seed: int | None = request["init_seed"] if request.get("state_rule") == "init" else None
        self.init_rule: str | None = request.get("init_rule")
        self.data = data
        self.notes: list[str] = []
        self.no_float64: str | None = None
        self.amplifies = False
        """Whether the reference's own rounding is more than what else tells a float64 run from another computation."""
        self.stochastic = False
        self.hows: dict[tuple[str, str, int], dict[str, Any]] = {}

    def answer(self) -> dict[str, Any]:
        """The whole `OracleData`."""
        reference.pin()
        source = read_source(self.path)
        module = load(self.path, source)
        defect, cases = None, []
        try:
            if (found := self._fitting(self._case(module, "default"), "default")) is not None:
                cases.append(found)
        except Defect as error:
            defect = str(error)
        for label, changes in variants(module, self.path) if defect is None else []:
            try:
                with _defects(self.path, label):
                    changed = load(self.path, source, changes)
                if (found := self._fitting(self._case(changed, label), label)) is not None:
                    cases.append(found)
            except Defect as error:
                self.notes.append(f"case {label} is left out: {error}")
        if defect is None and not cases:
            raise DoesNotFit("; ".join(self.notes))
        return {
            "schema": SCHEMA,
            "no_float64": self.no_float64,
            "stochastic": self.stochastic,
            "defect": defect,
            "cases": cases,
            "notes": self.notes,
        }

    def _case(self, module: Any, label: str) -> Case:
        with _defects(self.path, "get_init_inputs"):
            seed_all(derive(self.seed, "init-inputs"))
            case = make_case(self.path, module, label)
        with _defects(self.path, "a call with gradients"):
            case.find_gradients()
        if case.gradients is not None and label == "default":
            self.notes.append(f"a call is forward and its backward pass: {', '.join(gradients.names(case.gradients))}")
        return case

    def _fitting(self, case: Case, label: str) -> dict[str, Any] | None:
        """The case's document; None, with a note, if it is too large for this machine."""
        try:
            return self._document(case)
        except DoesNotFit as error:
            self.notes.append(f"case {label} is left out: {error}")
        except (RuntimeError, MemoryError) as error:
            if not _out_of_memory(error):
                raise
            self.notes.append(f"case {label} is left out: out of memory ({' '.join(str(error).split())[:200]})")
        return None

    def _document(self, case: Case) -> dict[str, Any]:
        seed_all(derive(self.seed, "estimate"))
        size = estimate(case) or Estimate()
        calls = next((calls for calls in (CALLS, 1) if size.memory + size.trial(calls) <= self.max_bytes), 0)
        if calls == 0:
            needed = size.memory + size.trial(CALLS)
            raise DoesNotFit(f"it needs {_gib(needed)} (inputs {_gib(size.inputs)}, state {_gib(size.state)}, outputs "
                             f"{_gib(size.outputs)}), and {_gib(self.max_bytes)} are allowed")  # fmt: skip
        if calls < CALLS:
            self.notes.append(f"case {case.label} is called once in each trial: two calls do not fit in "
                              f"{_gib(self.max_bytes)}")  # fmt: skip
        if size.inputs > LARGE and self.device != "cpu":
            case.device = self.device
        shape = self._first_call(case, size, calls)
        floating = any(ref.startswith(("float", "bfloat")) for ref in _dtypes(shape.signature["args"]))
        trials = [self._trial(case, shape, regime, seed) for regime, seed in self._wanted(case, shape, floating)]
        return {
            "signature": shape.signature,
            "trials": [trial for trial in trials if trial is not None],
            "fixed": case.fixed,
            "changed": self.init_rule is not None and shape.level > 0,
        }

    def _wanted(self, case: Case, shape: Shape, floating: bool) -> list[tuple[str, int]]:
        """Regime and seed of each trial, as far as the data's share of `max_bytes` goes."""
        size = shape.estimate
        default = case.label == "default"
        # On a CPU, where runs take long, other shapes have one.
        trials = self.trials if default or self.device != "cpu" else 1
        wanted = [("seed", derive(self.seed, case.label, "seed", i)) for i in range(trials)]
        calls = SAMPLES if self.stochastic else shape.calls
        room = max(self.max_bytes - size.memory, 0)
        fit = max(room // max(size.trial(calls), 1), 1)
        if len(wanted) > fit:
            self.notes.append(f"{fit} of {len(wanted)} trials fit in {_gib(self.max_bytes)}")
            wanted = wanted[:fit]
        if default and self.regimes and floating and not self.stochastic:
            room -= len(wanted) * size.trial(calls)
            regimes = [*oracle_regime.REGIMES, *self._expanded(case, shape)]
            if room < len(regimes) * size.trial(1):
                self.notes.append(f"value regimes do not fit in {_gib(self.max_bytes)}")
            else:
                wanted += [(regime, derive(self.seed, case.label, regime)) for regime in regimes]
        return wanted

    # The first call of a case: layout, defects, what can be computed in float64.

    def _first_call(self, case: Case, size: Estimate, calls: int) -> Shape:
        """Run the case once and look for defects."""
        seed = derive(self.seed, case.label, "first")
        with _defects(self.path, "get_inputs"):
            docs, flats = self._first_inputs(case, seed)
        with _defects(self.path, "Model.__init__"):
            reference.survey(case, (derive(self.seed, "survey", 0), derive(self.seed, "survey", 1)))
        level, run = self._settle(case, seed, docs, flats)
        with _defects(self.path, "Model.forward"):
            outputs = _checked_outputs(run)
        if run.drew:
            self.stochastic = True
        else:
            weights = self._weights(seed, level)
            # Not kept: results can be large.
            _require_repeatable(outputs, self._call(case, weights, docs, flats, seed))
        if self.stochastic:
            self.no_float64 = "the reference draws random numbers"
        elif case.label == "default":
            self.no_float64 = self._try_wide(case, seed, level, docs, flats, run)
        if flats and case.label == "default":
            self._require_dependence(case, seed, level, docs, flats, outputs)
        return Shape(self._signature(case, level, docs, flats), level, size, calls, _layouts(outputs))

    def _first_inputs(self, case: Case, seed: int) -> tuple[list[Any], list[torch.Tensor]]:
        """Inputs of a call, made on the CPU if the problem cannot make them where the reference runs."""
        if case.device != "cpu":
            with contextlib.suppress(Exception):
                docs, flats = self._inputs(case, seed, 0)
                if all(flat.device.type != "cpu" for flat in flats if flat.numel() > 1):
                    return docs, flats
            case.device = "cpu"
        return self._inputs(case, seed, 0)

    def _settle(self, case: Case, seed: int, docs: list[Any], flats: list[torch.Tensor]) -> tuple[int, Run]:
        """The largest perturbation of the weights under which the reference still works."""
        usable: tuple[int, Run] | None = None
        for level in (2, 1, 0) if self.init_seed is None else (1, 0):
            try:
                run = self._call(case, self._weights(seed, level), docs, flats, seed)
                if reference.all_finite(run):
                    return self._advanced(case, seed, docs, flats, run) if level == 2 else (level, run)
                usable = usable or (level, run)
            except Defect:
                if level == 0 and usable is None:
                    raise
        if usable is None:
            raise Defect("the reference does not run")
        return usable

    def _advanced(self, case: Case, seed: int, docs: list[Any], flats: list[torch.Tensor], run: Run) -> tuple[int, Run]:
        """The same with counters that have counted before, if the reference has such and works so."""
        case.counters = reference.counters(run)
        if case.counters:
            with contextlib.suppress(Defect):
                later = self._call(case, self._weights(seed, 3), docs, flats, seed)
                if reference.all_finite(later):
                    return 3, later
        return 2, run

    def _call(self, case: Case, weights: Weights, docs: list[Any], flats: list[torch.Tensor], seed: int) -> Run:
        with _defects(self.path, "Model.__init__"):
            model = reference.build(case, weights)
        with _defects(self.path, "Model.forward"):
            run = reference.call_native(model, docs, flats, derive(seed, "forward", 0), self.device)
            _checked_outputs(run)
            return run

    def _try_wide(
        self, case: Case, seed: int, level: int, docs: list[Any], flats: list[torch.Tensor], native: Run
    ) -> str | None:
        """Why the reference has no float64 counterpart, or None."""
        if not any(t.is_floating_point() for t in reference.output_tensors(native.output).values()):
            return None
        try:
            model = reference.widen(reference.build(case, self._weights(seed, level)))
            wide = reference.call_wide(model, docs, flats, derive(seed, "forward", 0), self.device)
            reason = reference.disagreement(native, wide)
            if reason and reference.disagreement(native, wide, amplified=True) is None:
                weights = self._weights(seed, level)
                others = (self._call(case, weights, docs, reference.nudged(flats, i), seed) for i in range(NUDGES))
                self.amplifies = reference.amplifies(native, wide, others)
            if not self.amplifies:
                return reason
            self.notes.append(f"the reference amplifies rounding: {reason}")
            return None
        except Exception as error:
            return f"the float64 run fails: {describe(error, self.path)}"

    def _require_dependence(
        self, case: Case, seed: int, level: int, docs: list[Any], flats: list[torch.Tensor], outputs: dict[str, Any]
    ) -> None:
        """A reference whose outputs are the same for several different inputs cannot tell right from wrong."""
        weights = self._weights(seed, level)
        for other in range(1, 4):
            with _defects(self.path, "get_inputs"):
                fresh_docs, fresh = self._inputs(case, seed, other)
            if not same_layout(fresh_docs, docs):
                raise Defect(f"{self.path}: get_inputs gives other shapes or layouts on each call")
            if fresh_docs != docs and _NUMBERS not in self.notes:
                self.notes.append(_NUMBERS)
            if all(reference.same_bytes(a, b) for a, b in zip(flats, fresh, strict=True)):
                self.notes.append("get_inputs gives the same values under every seed")
                return
            run = self._call(case, weights, docs, fresh, seed)
            if any(not reference.same_bytes(t, outputs[p]) for p, t in _checked_outputs(run).items()):
                return
            if any(not reference.same_bytes(a, b) for a, b in zip(fresh, run.flats, strict=True)):
                return
        raise Defect("the reference ignores its inputs: its outputs are equal for different ones")

    def _signature(self, case: Case, level: int, docs: list[Any], flats: list[torch.Tensor]) -> dict[str, Any]:
        model = reference.build(case, dataclasses.replace(self._weights(0, level), device="cpu"))
        state = reference.state_of(model)
        return {
            "case": case.label,
            "init_args": [encode(value, _no_tensor) for value in case.init_args],
            "init_kwargs": [[key, encode(value, _no_tensor)] for key, value in case.init_kwargs.items()],
            "args": docs,
            "buffers": [flat.untyped_storage().nbytes() for flat in flats],
            "state": [
                {
                    "name": name,
                    "dtype": dtype_name(value),
                    "shape": list(value.shape),
                    "strides": contiguous_strides(list(value.shape)),
                    "offset": 0,
                }
                for name, value in state.items()
            ],
            "parameters": [name for name, _ in model.named_parameters(remove_duplicate=False) if name in state],
            "training": case.training,
            "gradients": case.gradients,
        }

    # Trials.

    def _trial(self, case: Case, shape: Shape, regime: str, seed: int) -> dict[str, Any] | None:
        """One trial's document; None, with a note, for a regime that says nothing."""
        weights = self._weights(seed, shape.level)
        if regime in ("constant-rows", "mixed-rows") and shape.estimate.ties:
            self.notes.append(f"value regime {regime} says nothing: torch may order equal elements in any way")
            return None
        how = self._how(case, shape, regime, seed, weights)
        native, wide = self._models(case, weights)
        state = [self.data.share(value) for value in reference.state_of(native).values()]
        calls: list[dict[str, Any]] = []
        blobs: list[dict[str, int]] = []
        flats: list[torch.Tensor] = []
        for number in range(SAMPLES if self.stochastic else shape.calls if regime == "seed" else 1):
            if not self.stochastic or not calls:
                docs, flats = self._inputs(case, seed, number)
                if not same_layout(docs, shape.signature["args"]):
                    raise Defect(f"{self.path}: get_inputs gives other shapes or layouts on each call")
                if regime != "seed" and not oracle_regime.apply(regime, docs, flats, **how):
                    self.notes.append(f"value regime {regime} changes nothing or leaves the range of the dtype")
                    return None
            forward = derive(seed, "forward", number)
            with _defects(self.path, "Model.forward") if regime == "seed" else contextlib.nullcontext():
                outcome = self._both(native, wide, shape.signature["args"], flats, forward, regime)
            if not isinstance(outcome, str):
                outputs = _layouts(reference.output_tensors(outcome[0].output))
                if outputs != shape.outputs:
                    outcome = _other_layout(shape.outputs, outputs)
                    if regime == "seed":
                        raise Defect(outcome)
            if isinstance(outcome, tuple):
                outcome = self._unsteady(case, shape, weights, regime, flats, forward, outcome) or outcome
            if isinstance(outcome, str):
                self.notes.append(f"value regime {regime} says nothing: {outcome}")
                return None
            if not self.stochastic or not calls:
                blobs = [self.data.share(flat) for flat in flats]
            expected = reference.describe_expected(*outcome, flats, shape.estimate.copy_only, self.data.write)
            calls.append({"inputs": blobs, "expected": expected})
            del outcome  # before the next call makes its own results: they can be large
        return {"regime": regime, "seed": seed, "state": state, "calls": calls}

    def _models(self, case: Case, weights: Weights) -> tuple[Any, Any]:
        """The module, and its counterpart in float64 if there is one."""
        native = reference.build(case, weights)
        return native, reference.widen(reference.build(case, weights)) if self.no_float64 is None else None

    def _how(self, case: Case, shape: Shape, regime: str, seed: int, weights: Weights) -> dict[str, Any]:
        """The factor or the kinds of rows that the reference stands, for the regimes that have such."""
        if regime == oracle_regime.EXPANDED:
            return {"axes": shape.signature["gradients"]["expanded"]}
        if self.no_float64 is not None or regime not in ("large", "mixed-rows"):
            return {}
        key = (case.label, regime, seed)
        if key not in self.hows:
            self.hows[key] = self._find_how(case, shape, regime, seed, weights)
        return self.hows[key]

    def _find_how(self, case: Case, shape: Shape, regime: str, seed: int, weights: Weights) -> dict[str, Any]:
        def stands(**how: Any) -> bool:
            docs, flats = self._inputs(case, seed, 0)
            changed = same_layout(docs, shape.signature["args"]) and oracle_regime.apply(regime, docs, flats, **how)
            forward = derive(seed, "forward", 0)
            outcome = changed and self._both(
                *self._models(case, weights), shape.signature["args"], flats, forward, regime
            )
            if not isinstance(outcome, tuple):
                return False
            return self._unsteady(case, shape, weights, regime, flats, forward, outcome) is None

        if regime == "large":
            first = next((factor for factor in oracle_regime.LARGE if stands(factor=factor)), None)
            return {} if first is None else {"factor": first}
        kinds = [kind for kind in oracle_regime.KINDS if stands(kinds=[kind])]
        return {"kinds": kinds}

    def _expanded(self, case: Case, shape: Shape) -> list[str]:
        """The regime of expanded cotangents, where the problem asks for gradients and these say something: that of a
        softmax is nothing under the gradient of a sum. The signature says along which dimensions they are expanded.

        Found under the constructor's weights, so that it is the same under all rules for weights."""
        if case.gradients is None or self.no_float64 is not None:
            return []
        seed = derive(self.seed, case.label, "expanded")
        weights = Weights(seed, 0, self.device)
        docs = shape.signature["args"]

        def sizes(axes: oracle_regime.Axes | None) -> dict[str, float]:
            _, flats = self._inputs(case, seed, 0)
            if axes is not None and not oracle_regime.apply(oracle_regime.EXPANDED, docs, flats, axes=axes):
                return {}
            runs = self._both(*self._models(case, weights), docs, flats, seed, oracle_regime.EXPANDED)
            outputs = {} if isinstance(runs, str) else reference.output_tensors(runs[0].output)
            return {path: _rms(tensor) for path, tensor in outputs.items() if path.startswith("grad ")}

        usual = sizes(None)
        shapes = [doc["shape"] for doc in docs[-1]["items"]]
        for axes in oracle_regime.expansions(shapes) if usual else []:
            found = sizes(axes)
            if found and all(found[path] >= SMALL * usual[path] for path in usual):
                shape.signature["gradients"] = {**case.gradients, "expanded": axes}
                return [oracle_regime.EXPANDED]
        return []

    def _both(
        self, native: Any, wide: Any, docs: list[Any], flats: list[torch.Tensor], seed: int, regime: str
    ) -> tuple[Run, Run | None] | str:
        """Native and float64 runs of a call. Under a regime, a text instead, if the runs do not confirm each other."""
        try:
            first = reference.call_native(native, docs, flats, seed, self.device)
        except Exception as error:
            if regime == "seed":
                raise
            return describe(error, self.path)
        if regime != "seed" and not reference.all_finite(first):
            return "the reference is not finite"
        if wide is None:
            return (first, None) if regime == "seed" else "there is no float64 run to confirm it"
        try:
            second = reference.call_wide(wide, docs, flats, seed, self.device)
            reason = reference.disagreement(first, second, amplified=self.amplifies and regime == "seed")
        except Exception as error:
            reason = describe(error, self.path)
        rows = regime in ("constant-rows", "mixed-rows", oracle_regime.EXPANDED)
        if rows and reason is None and reference.vanishes(second, flats):
            # A variance, say: what is left in float32 is cancellation, and relative to nothing.
            reason = "an output is zero"
        if reason is None:
            return first, second
        if regime == "seed":
            self.notes.append(f"a trial has no float64 results: {reason}")
            return first, None
        return reason

    def _unsteady(
        self,
        case: Case,
        shape: Shape,
        weights: Weights,
        regime: str,
        flats: list[torch.Tensor],
        seed: int,
        runs: tuple[Run, Run | None],
    ) -> str | None:
        """Why a regime of large values says nothing, or None."""
        native, wide = runs
        if regime not in ("scaled-1e3", "large") or wide is None:
            return None
        model = reference.widen(reference.build(case, weights))
        inputs = reference.nudged(widened(flats), 0, torch.float32)
        return reference.unsteady(
            native, wide, reference.call_wide(model, shape.signature["args"], inputs, seed, self.device)
        )

    def _inputs(self, case: Case, seed: int, number: int) -> tuple[list[Any], list[torch.Tensor]]:
        """Arguments of a call as documents, and their storages on the case's device."""
        reference.pin()
        seed_all(derive(seed, "inputs", number))
        storages = Storages()
        with contextlib.nullcontext() if case.device == "cpu" else torch.device(case.device):
            docs = [encode(value, storages.add) for value in case.inputs()]
        return docs, [flat.to(case.device) for flat in storages.flats]

    def _weights(self, seed: int, level: int) -> Weights:
        """Weights of a trial, or those of the constructor under the init seed, which have levels 0 and 1."""
        if self.init_seed is None:
            return Weights(derive(seed, "weights"), level, self.device)
        return Weights(self.init_seed, 0, self.device, self.init_rule if level > 0 else None)


def _rms(tensor: torch.Tensor) -> float:
    return float(tensor.double().square().mean().sqrt()) if tensor.numel() > 0 else 0.0


def _dtypes(docs: list[Any]) -> Iterator[str]:
    """Dtypes of all tensors in argument documents."""
    for doc in docs:
        if doc["kind"] == "tensor":
            yield doc["dtype"]
        items = doc.get("items", [])
        yield from _dtypes([item[1] for item in items] if doc["kind"] == "dict" else items)


def _no_tensor(_tensor: torch.Tensor, _path: str) -> dict[str, Any]:
    raise UnsupportedValue("get_init_inputs gives a tensor: a constructor's arguments may hold no data")


def _checked_outputs(run: Run) -> dict[str, torch.Tensor]:
    """Output tensors by path. Raises `Defect` for an output that cannot be judged."""
    try:
        tensors = reference.output_tensors(run.output)
        for tensor in tensors.values():
            dtype_name(tensor)
    except UnsupportedValue as error:
        raise Defect(f"the output of the reference cannot be judged: {error}") from error
    if not tensors:
        raise Defect("the reference returns no tensor")
    floats = [tensor for tensor in tensors.values() if tensor.is_floating_point() and tensor.numel() > 0]
    if len(floats) == len(tensors) and not any(_some_finite(tensor) for tensor in floats):
        raise Defect("every element of the reference's output is NaN or infinite")
    return tensors


def _layouts(outputs: dict[str, torch.Tensor]) -> Layouts:
    return {path: (tensor.dtype, tensor.shape) for path, tensor in outputs.items()}


def _other_layout(first: Layouts, second: Layouts) -> str:
    """Why no plan can be right for two calls."""
    path = next(path for path in (*first, *second) if first.get(path) != second.get(path))

    def words(layouts: Layouts) -> str:
        dtype, shape = layouts.get(path, (None, ()))
        return f"{dtype} {list(shape)}".removeprefix("torch.") if dtype else "nothing"

    return (
        f"the shape of the reference's output depends on values: {path} is {words(first)} in one call and "
        f"{words(second)} in another"
    )


def _some_finite(tensor: torch.Tensor) -> bool:
    return reference.is_finite(tensor) or bool(tensor.float().isfinite().any())


def _require_repeatable(outputs: dict[str, torch.Tensor], again: Run) -> None:
    """Raises `Defect` if a second identical run gives other results, beyond the order of atomic additions."""
    for path, tensor in _checked_outputs(again).items():
        tolerance = 0.1 * reference.TOLERANCE.get(tensor.dtype, 0.0)
        if path not in outputs or (reason := reference.differ(outputs[path], tensor, tolerance)):
            reason = "another structure" if path not in outputs else reason
            raise Defect(f"the reference varies from run to run without drawing random numbers: {path}: {reason}")


@contextlib.contextmanager
def _defects(path: str, place: str) -> Iterator[None]:
    """Turn an exception of the problem's code into a `Defect` with file and line."""
    try:
        yield
    except (Defect, DoesNotFit, ProblemError, UnsupportedValue):
        raise
    except NotDifferentiable as error:
        raise Defect(f"{path}: {error}") from error
    except (Exception, SystemExit) as error:
        if _out_of_memory(error):
            raise
        raise Defect(f"{place} fails: {describe(error, path)}") from error


def _out_of_memory(error: BaseException) -> bool:
    return isinstance(error, (MemoryError, torch.OutOfMemoryError)) or "can't allocate memory" in str(error)


def _gib(count: int) -> str:
    return f"{count / 2**30:.2f} GiB"
