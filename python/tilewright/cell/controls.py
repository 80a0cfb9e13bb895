"""Handler `controls`: the oracle's data of a problem, and what runs without the answer would give. Trusted code.

Request: as for `oracle`. Response: `{oracle: OracleData, results, inapplicable, reasons}`, or the oracle's error
document. `results` has for each case and trial, by name of the control, per call one blob (or null) for each of the
call's expected tensors. `inapplicable` says by name why a control has no result anywhere, `reasons` is the problem's
own `CONTROLS`.

Controls (docs/design/controls.md): `copy` runs the reference once more on a module of its own. Without the answer:
`input[i]`, `mean-over-seeds`, `other-seed`, `skipped-stage`. In a lower precision: `fp32`, `bf16`, `fp16`, `fp8`.
Zeros, a constant and unchanged state need no run: the Rust side makes them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from tilewright.cell import controls_modes as modes
from tilewright.cell import oracle, oracle_regime
from tilewright.cell import oracle_reference as reference
from tilewright.cell.oracle import Oracle, Shape
from tilewright.cell.oracle_problem import Case, ProblemError, describe
from tilewright.cell.oracle_reference import Run, Weights, derive
from tilewright.cell.oracle_values import NAMES, DataFile, decode

OTHER_SEEDS = 4
"""Runs under other seeds that are averaged."""

EXEMPTABLE = re.compile(
    r"zeros|constant|unchanged|input(\[\d+\])?|mean-over-seeds|other-seed|skipped-stage|fp32|bf16|fp16|fp8"
)
"""Controls that a problem may state a reason for."""

Values = dict[str, torch.Tensor]
"""Tensors by path, such as `output[0]`."""


def run(request: dict[str, Any], scratch: str) -> dict[str, Any]:
    """Handle one job; `scratch` is not used."""
    del scratch
    return oracle.answer(request, Controls)


class Controls(Oracle):
    """One request being answered."""

    def __init__(self, request: dict[str, Any], data: DataFile) -> None:
        super().__init__(request, data)
        self.reasons: dict[str, str] = {}
        self.applied: set[str] = set()
        self.inapplicable: dict[str, str] = {}
        self.others: dict[str, dict[str, Values]] = {}

    def answer(self) -> dict[str, Any]:
        """The oracle's document with the controls' results beside it."""
        document = super().answer()
        results = [[trial.pop("controls") for trial in case["trials"]] for case in document["cases"]]
        inapplicable = {name: why for name, why in self.inapplicable.items() if name not in self.applied}
        return {"oracle": document, "results": results, "inapplicable": inapplicable, "reasons": self.reasons}

    def _document(self, case: Case) -> dict[str, Any]:
        if case.label == "default":
            self.reasons = _reasons(case)
        return super()._document(case)

    def _trial(self, case: Case, shape: Shape, regime: str, seed: int) -> dict[str, Any] | None:
        trial = super()._trial(case, shape, regime, seed)
        if trial is not None:
            trial["controls"] = self._results(case, shape, regime, seed, trial["calls"])
        return trial

    def _results(
        self, case: Case, shape: Shape, regime: str, seed: int, calls: list[dict[str, Any]]
    ) -> dict[str, list[list[Any]]]:
        """Blobs by control, call and expected tensor."""
        weights = self._weights(seed, shape.level)
        runners = self._runners(case, weights, calls[0]["expected"]["tensors"])
        results: dict[str, list[list[Any]]] = {}
        docs: list[Any] = []
        flats: list[torch.Tensor] = []
        for number, call in enumerate(calls):
            if not self.stochastic or not docs:
                _, flats = self._inputs(case, seed, number)
                docs = shape.signature["args"]
                if regime != "seed":
                    oracle_regime.apply(regime, docs, flats, **self._how(case, shape, regime, seed, weights))
            forward = derive(seed, "forward", number)
            tensors = call["expected"]["tensors"]
            found = {name: self._attempt(name, runner, docs, flats, forward) for name, runner in runners.items()}
            found |= self._other_seeds(case, shape, number)
            found |= _inputs_as_outputs(docs, flats, tensors)
            for name, values in found.items():
                blobs = [self._blob(values.get(tensor["path"]), tensor) for tensor in tensors]
                if any(blob is not None for blob in blobs):
                    self.applied.add(name)
                results.setdefault(name, [[None] * len(tensors)] * number).append(blobs)
            for name in results.keys() - found.keys():
                results[name].append([None] * len(tensors))
        return results

    def _attempt(self, name: str, runner: Runner, docs: list[Any], flats: list[torch.Tensor], seed: int) -> Values:
        try:
            values = runner(docs, flats, seed)
        except Exception as error:
            self.inapplicable.setdefault(name, f"it does not run: {describe(error, self.path)}")
            return {}
        if not values:
            self.inapplicable.setdefault(name, "there is no earlier result of an output's shape")
        return values

    def _runners(self, case: Case, weights: Weights, tensors: list[dict[str, Any]]) -> dict[str, Runner]:
        """What gives the values of each control that runs the module, state carried from call to call."""

        def copy(docs: list[Any], flats: list[torch.Tensor], seed: int) -> Values:
            # Equal random numbers would make equal bits, where only the distribution is asked for.
            seed = derive(seed, "copy") if self.stochastic else seed
            return _values(reference.call_native(models["copy"], docs, flats, seed, self.device))

        def skipped(docs: list[Any], flats: list[torch.Tensor], seed: int) -> Values:
            with modes.Intermediates() as mode:
                call = reference.call_native(models["skipped-stage"], docs, flats, seed, self.device)
            outputs = reference.output_tensors(call.output)
            earlier = {path: mode.before_last(tensor) for path, tensor in outputs.items()}
            return {path: tensor for path, tensor in earlier.items() if tensor is not None}

        def lower(name: str) -> Runner:
            cut = modes.ROUNDING[name]

            def run(docs: list[Any], flats: list[torch.Tensor], seed: int) -> Values:
                rounded = [cut(flat) if flat.is_floating_point() else flat for flat in flats]
                with modes.Rounding(cut):
                    return _values(reference.call_native(models[name], docs, rounded, seed, self.device))

            return run

        precisions = modes.lower_precisions(_floating(case, tensors))
        if not precisions:
            self.inapplicable.setdefault("lower precision", "there is none of what the problem computes with")
        runners = {"copy": copy, "skipped-stage": skipped} | {name: lower(name) for name in precisions}
        models = {name: reference.build(case, weights) for name in runners}
        for name in precisions:
            modes.round_module(models[name], modes.ROUNDING[name])
        return runners

    def _other_seeds(self, case: Case, shape: Shape, number: int) -> dict[str, Values]:
        """Outputs on other weights and inputs, which are the same for every trial; as draws where the problem draws."""
        key = f"{case.label}/{number if self.stochastic else 0}"
        if key not in self.others:
            runs = [
                self._other(case, shape, derive(self.seed, case.label, "other", i), number) for i in range(OTHER_SEEDS)
            ]
            mean = {path: _mean([values[path] for values in runs]) for path in runs[0]}
            self.others[key] = {"other-seed": runs[0], "mean-over-seeds": mean}
        return self.others[key]

    def _other(self, case: Case, shape: Shape, seed: int, number: int) -> Values:
        model = reference.build(case, self._weights(seed, shape.level))
        _, flats = self._inputs(case, seed, 0)
        docs, number = shape.signature["args"], number if self.stochastic else 0
        call = reference.call_native(model, docs, flats, derive(seed, "forward", number), self.device)
        return {path: tensor.detach().clone() for path, tensor in reference.output_tensors(call.output).items()}

    def _blob(self, value: torch.Tensor | None, tensor: dict[str, Any]) -> dict[str, int] | None:
        """Writes a value as the expected tensor's dtype; nothing where its shape is another."""
        if value is None or list(value.shape) != tensor["shape"]:
            return None
        return self.data.write(value.to(NAMES[tensor["dtype"]]))


Runner = Callable[[list[Any], list[torch.Tensor], int], Values]
"""Values on arguments (documents and storages) under a seed for `forward`."""


def _reasons(case: Case) -> dict[str, str]:
    """The problem's own `CONTROLS`: why a control passes, and rightly so."""
    reasons = getattr(case.module, "CONTROLS", {})
    texts = isinstance(reasons, dict) and all(isinstance(why, str) and why.strip() for why in reasons.values())
    if not texts:
        raise ProblemError("problem", f"{case.path}: CONTROLS is not a dict of control to reason")
    for name in reasons:
        if not isinstance(name, str) or not EXEMPTABLE.fullmatch(name):
            raise ProblemError("problem", f"{case.path}: CONTROLS names {name!r}, which is no control with a choice")
    return reasons


def _values(call: Run) -> Values:
    """Every tensor that a call left behind, by path."""
    values = reference.output_tensors(call.output)
    values |= {f"input[{i}]": flat for i, flat in enumerate(call.flats)}
    return values | {f"state.{name}": tensor for name, tensor in call.state.items()}


def _floating(case: Case, tensors: list[dict[str, Any]]) -> torch.dtype | None:
    """The dtype whose precision the problem is about: of its outputs, or else of its inputs or weights."""
    dtypes = [NAMES[tensor["dtype"]] for tensor in tensors]
    dtypes += [leaf.dtype for leaf in tree_leaves(case.inputs()) if isinstance(leaf, torch.Tensor)]
    dtypes += [value.dtype for value in reference.state_of(case.build()).values()]
    return next((dtype for dtype in dtypes if dtype.is_floating_point), None)


def _mean(tensors: list[torch.Tensor]) -> torch.Tensor:
    """Element by element: the mean, rounded for integers, the majority for booleans."""
    mean = torch.stack([tensor.double() for tensor in tensors]).mean(0)
    return mean if tensors[0].is_floating_point() else mean.round()


def _inputs_as_outputs(docs: list[Any], flats: list[torch.Tensor], tensors: list[dict[str, Any]]) -> dict[str, Values]:
    """Each input tensor as every output that its elements can be laid out as."""
    found: dict[str, Values] = {}
    arguments = [leaf for doc in docs for leaf in tree_leaves(decode(doc, flats)) if isinstance(leaf, torch.Tensor)]
    outputs = [tensor for tensor in tensors if not tensor["path"].startswith(("input[", "state."))]
    for i, argument in enumerate(arguments):
        fitted = {tensor["path"]: fit(argument, tensor["shape"]) for tensor in outputs}
        values = {path: value for path, value in fitted.items() if value is not None}
        if values:
            found[f"input[{i}]"] = values
    return found


def fit(tensor: torch.Tensor, shape: list[int]) -> torch.Tensor | None:
    """A tensor's own elements in another shape: reshaped, or cut to its first elements and repeated by broadcasting."""
    if tensor.numel() == 0 or 0 in shape:
        return None
    if list(tensor.shape) == shape:
        return tensor
    if tensor.numel() == torch.Size(shape).numel():
        return tensor.reshape(shape)
    while tensor.dim() > len(shape):
        tensor = tensor[0]
    for axis in range(1, tensor.dim() + 1):
        if tensor.shape[-axis] not in (1, shape[-axis]):
            if tensor.shape[-axis] < shape[-axis]:
                return None
            tensor = tensor.narrow(-axis, 0, shape[-axis])
    return tensor.expand(shape)
