"""The tracer: what `ModelNew.forward` does, as a plan, found on fake tensors without a device and without data.

The job runs hostile Python in a forked child of its own, so what it answers is a claim. It can name kernels of the
file, shapes and numbers; it can supply no code and no data.
"""

from __future__ import annotations

import json
import random
import tempfile
import weakref
from typing import Any

import torch
import triton  # noqa: F401
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._pytree import tree_leaves
from triton.runtime import driver

from . import (
    trace_device,
    trace_gradients,
    trace_launch,
    trace_layouts,
    trace_purity,
    trace_snapshot,
    trace_torch,
    trace_tuning,
)
from .trace_audit import Audit
from .trace_builtins import candidate_builtins
from .trace_compiled import Compile
from .trace_conditions import Conditions
from .trace_coverage import Coverage
from .trace_device import Card, CardDriver, UnknownTarget, device_properties
from .trace_fake import asked_by_file
from .trace_mode import RecordingMode
from .trace_module import Inputs, bind_state, decode
from .trace_record import Addresses, Recorder, TraceEnd, World, findings_of, number, write_finding
from .trace_seal import out_of_reach, seal_classes
from .trace_source import MODULE, Source, error, failure_kind
from .trace_state import Fingerprint

MAX_BYTES = 16 << 20
_CIRCUMSTANCE = "(circumstance)"
"""`tilewright_contract::Choice::CIRCUMSTANCE`"""
_MEASURING = (
    "in a first call, in which Triton measures the configurations: name what the kernel adds to in reset_to_zero, "
    "and what it changes in place in restore_value"
)
_LOOKS = 16
"""Ops and launches of each call at which the interpreter is looked at."""


class Session:
    """One trace job: the candidate, the pretend device, and the recorder of the call under way (if any)."""

    def __init__(self, request: dict[str, Any], scratch: str) -> None:
        self.signature = request["signature"]
        self.source = Source(request["source"], scratch, request["kernels"])
        self.rng = random.Random(0)
        self.addresses = Addresses(self.rng)
        self.streams = trace_torch.Streams()
        self.card = Card(device_properties(request["target"]))
        self.conditions = Conditions()
        self.snapshot: trace_snapshot.Snapshot
        self.looks = 0
        self.made: dict[int, Any] = {}
        """Weak references to the storages that the last call of `forward` made."""
        self.tuning = trace_tuning.Tuning()
        self.changes: list[dict[str, Any]] = []
        """What the file had replaced or set when it was last looked at."""
        self.deriving = ""
        """What the backward pass does, where that is none of the file's code."""
        self.sparse_contexts: weakref.WeakSet[Any] = weakref.WeakSet()
        """Of autograd functions that take `None` for zeros."""
        self.rec: Recorder | None = None
        self.failed = 0
        """Record of a call of `forward` that raised."""
        self.binding = False
        self.fake_fields: set[str] = set()
        """Attributes that torch itself gives a fake tensor or parameter."""
        self.pointers_read = 0
        self.tainted: dict[int, torch.UntypedStorage] = {}
        self.specialised: dict[tuple[int, str, str], tuple[Compile, dict[str, Any]]] = {}
        self.compiled: dict[str, Any] = {}
        self.audit = Audit(self)
        self.mode = RecordingMode(self)
        self.namespace: dict[str, Any] = {}
        self.coverage = Coverage(self.source.code, self.source.tree, request.get("calls", []))

    def recorder(self, what: str) -> Recorder:
        """The current recorder. Outside of `forward` (a file that tests itself, say) a launch is seen but not kept:
        what it wrote cannot be part of a plan."""
        if self.rec is not None:
            return self.rec
        self.note("outside-forward", "evidence", f"{what} outside of forward")
        return Recorder(World(), self, outside=True)

    def note(self, rule: str, tier: str, message: str, help: str | None = None) -> None:
        """A finding in the call of `forward` under way, or in none."""
        write_finding(rule, tier, message, self.source.line(), help)

    def reads_data(self, what: str) -> Any:
        """The file wants a number that only the data could give: the trace ends."""
        message = f"{what} reads data, which a trace does not have{self.source.quote()}"
        help = "Pass shapes and strides to kernels, and keep decisions about values inside them."
        self.note("reads-data", "untraceable", message, help)
        raise TraceEnd

    # building ---------------------------------------------------------------------------------------------------

    def build(self) -> Built:
        """A fresh `ModelNew` on the device, its tensors bound to weights and constants."""
        inputs = Inputs(self.signature, self.card.device)
        with self.mode:
            args = [decode(v, inputs.tensor) for v in self.signature["init_args"]]
            kwargs = {k: decode(v, inputs.tensor) for k, v in self.signature["init_kwargs"]}
            module = self.namespace["ModelNew"](*args, **kwargs)
            if isinstance(module, torch.nn.Module):
                module.train(self.signature["training"])
                module.to("cuda")
        return Built(module, inputs, **bind_state(module, self.namespace, self.signature))

    def arguments(self) -> tuple[list[Any], Inputs]:
        """Fresh arguments of `forward`."""
        inputs = Inputs(self.signature, self.card.device)
        with self.mode:
            return [decode(v, inputs.tensor) for v in self.signature["args"]], inputs

    def call(
        self, built: Built, call: tuple[list[Any], Inputs], grad: bool | None = None, alone: bool = False
    ) -> Recorder:
        """Traces one call: of `forward`, and of its backward pass where the problem asks for gradients (unless `grad`
        says in which mode `forward` alone is called). With `alone`, what `forward` returns is taken from a call of its
        own before that, without gradients."""
        args, inputs = call
        gradients = self.signature.get("gradients") is not None
        derived = gradients and grad is None
        sources = {**built.world.sources, **inputs.sources}
        world = World({**built.inputs.storages, **inputs.storages}, sources, dict(built.world.keep))
        rec = Recorder(world, self)
        self.streams.reset()
        self.rec = rec
        if derived:
            trace_gradients.mark_leaves(self, args)
        leaves = [leaf for leaf in tree_leaves(args) if isinstance(leaf, torch.Tensor)]
        marks = [self.marks(leaf) for leaf in leaves]
        try:
            with self.mode, torch.set_grad_enabled(bool(derived or grad)):
                self.snapshot.freeze()
                self.looks = _LOOKS
                if derived:
                    shown = trace_gradients.without(built.module, args[:-1]) if alone else {}
                    result = trace_gradients.results(self, rec, built.module, args) | shown
                else:
                    result = built.module(*(args[:-1] if gradients else args))
                if any(self.marks(leaf) != before for leaf, before in zip(leaves, marks, strict=True)):
                    message = "forward sets attributes, hooks or requires_grad of its inputs"
                    rec.find("hidden-state", "proof", message, self.source.store_line("requires_grad"))
                rec.write("output", self.value(rec, result, 0))
                for name in self.snapshot.settings_left():
                    rec.find("tampering", "proof", f"forward leaves {name} changed")
            self.streams.finish(rec)
        except TraceEnd:
            pass
        except BaseException:
            self.failed = rec.record
            raise
        finally:
            self.rec, self.deriving = None, ""
            rec.close()
            self.made = rec.made
        return rec

    def marks(self, tensor: torch.Tensor) -> tuple[Any, ...]:
        """What a tensor carries besides its data: the caller's, for inputs."""
        with torch._C.DisableTorchFunction():
            own = tuple(name for name in vars(tensor) if name not in self.fake_fields)
            return own, tensor.requires_grad, tensor.is_leaf and tensor.retains_grad, bool(tensor._backward_hooks)

    def look(self) -> None:
        """Called at ops and launches: what is replaced only meanwhile would be back in place afterwards."""
        if self.looks > 0:
            self.looks -= 1
            for name in self.snapshot.replaced_now():
                line = self.source.store_line(name.rsplit(".", 1)[-1])
                write_finding("tampering", "proof", f"the file replaces {name} while forward runs", line)

    def value(self, rec: Recorder, value: Any, depth: int) -> dict[str, Any]:
        """What `forward` returned as `tilewright_contract::Value`."""
        if value is None:
            return {"kind": "none"}
        if isinstance(value, torch.Tensor):
            return self._output(rec, value)
        if isinstance(value, (bool, int, float)):
            return {"kind": "number", "value": number(value)}
        if isinstance(value, str):
            return {"kind": "str", "value": value}
        if isinstance(value, (torch.dtype, torch.device)):
            return {"kind": "torch", "value": str(value)}
        if depth < 16:
            if isinstance(value, (list, tuple)):
                kind = "list" if isinstance(value, list) else "tuple"
                return {"kind": kind, "items": [self.value(rec, item, depth + 1) for item in value]}
            if isinstance(value, dict):
                items = [[str(key), self.value(rec, item, depth + 1)] for key, item in value.items()]
                return {"kind": "dict", "items": items}
        if type(value).__module__ == MODULE:
            rec.find("tensor-subclass", "proof", f"forward returns a {type(value).__name__}, a class of its own")
        else:
            rec.find("output-type", "unsupported", f"forward returns a {type(value).__name__}")
        raise TraceEnd

    def _output(self, rec: Recorder, tensor: torch.Tensor) -> dict[str, Any]:
        odd = [name for name in getattr(tensor, "__dict__", {}) if name not in self.fake_fields]
        if type(tensor) not in (FakeTensor, torch.Tensor, torch.nn.Parameter) or odd:
            what = f"a tensor with its own {', '.join(odd)}" if odd else f"a {type(tensor).__name__}"
            rec.find("tensor-subclass", "proof", f"forward returns {what}, not a plain tensor")
        if tensor.device.type == "meta":
            rec.find("output-type", "unsupported", "forward returns a tensor of the meta device, which holds no data")
            raise TraceEnd
        if tensor.device.type != "cuda":
            rec.find("output-device", "evidence", "forward returns a tensor that is not on the device")
        return {"kind": "tensor", **rec.ref(tensor)}


class Built:
    """A constructed module with the origin of its tensors."""

    def __init__(self, module: Any, inputs: Inputs, world: World, missing: list[str], extra: list[str]) -> None:
        self.module, self.inputs, self.world = module, inputs, world
        self.missing, self.extra = missing, extra


def warm() -> None:
    """Does in the zygote, once, what every trace would otherwise do for itself: imports and first uses."""
    from triton.runtime.cache import triton_key
    from triton.runtime.jit import mangle_type

    trace_torch.first_use()
    triton_key()
    for value in (torch.empty(1), 1, 2.0, None):
        mangle_type(value)  # imports Gluon and fills the specialiser's table of types
    seal_classes()
    trace_snapshot.Snapshot()


def run(request: dict[str, Any], scratch: str) -> dict[str, Any]:
    """Traces a candidate: `{source, signature, kernels, calls, target, further}` to `{plans, missing, extra, ran}`.

    `further` says which calls are traced besides the one in which every autotuner takes its first configuration: see
    `trace_tuning.taken`. `missing`
    are names of the signature's state that the module lacks (or has in another shape), `extra` names of its own state
    that the signature lacks, `ran` the indices of those `calls` (places of the screen's open calls) that ran.
    """
    try:
        session = Session(request, scratch)
    except UnknownTarget as exception:
        return error("unsupported", exception, None)
    except (SyntaxError, ValueError, RecursionError) as exception:
        return error("syntax", exception, getattr(exception, "lineno", None))
    tempfile.tempdir = scratch  # for Triton's assembler; the zygote has long chosen a folder that is out of reach
    driver.set_active(CardDriver(request["target"], session.card, lambda: asked_by_file((trace_device.__file__,))))
    trace_torch.install(session)
    trace_launch.install(session)
    trace_tuning.install(session)
    trace_gradients.install(session)
    seal_classes()
    try:
        with out_of_reach():
            return _bounded(_traced(session, request["further"]))
    except MemoryError:
        raise
    except (Exception, TraceEnd) as exception:
        # Either our mistake or a file that broke the interpreter under us; without a plan it earns nothing.
        return session.source.error("unsupported", exception)


def _traced(session: Session, wanted: dict[str, Any]) -> dict[str, Any]:
    source = session.source
    session.snapshot = snapshot = trace_snapshot.Snapshot()
    session.audit.start()
    try:
        module = source.module(candidate_builtins(session))
        session.namespace = module.__dict__
        with session.mode, session.coverage.watching():
            source.run(module)
        if not isinstance(session.namespace.get("ModelNew"), type):
            response = error("missing-class", NameError("the file defines no class ModelNew"), None)
        else:
            response = _plans(session, wanted)
    except TraceEnd:
        response = {"plans": [_empty_plan()], "missing": [], "extra": [], "ran": []}
    except MemoryError:
        raise
    except BaseException as exception:
        response = source.error(failure_kind(exception), exception)
    session.audit.stop()
    findings = findings_of(0) + session.changes + snapshot.findings(session)
    if "plans" in response:
        _merge(response["plans"][0]["findings"], findings)
    else:
        _merge(response.setdefault("findings", []), findings_of(session.failed) + findings)
    return response


def _plans(session: Session, wanted: dict[str, Any]) -> dict[str, Any]:
    with session.coverage.watching():
        built = session.build()
    call = session.arguments()
    state = Fingerprint(session, built.module)
    with session.coverage.watching():
        first = session.call(built, call)
    state.look()
    base = first.plan()
    if not any(f["tier"] in ("untraceable", "unsupported") for f in base["findings"]):
        _merge(base["findings"], trace_purity.repeat(session, built, call, base, state))
    _merge(base["findings"], state.findings())
    plans = [base, *_configurations(session, built, base, first, wanted)]
    circumstances = (
        *_measured(session, built, first),
        *trace_purity.on_other_cards(session, base),
        *trace_purity.without_gradients(session, built, base),
        *trace_layouts.of_cotangents(session, built, base),
        *trace_purity.in_other_modes(session, built, base),
    )
    for circumstance, plan in circumstances:
        plan["choices"].append({"function": _CIRCUMSTANCE, "index": 1, "of": 2, "config": circumstance})
        plans.append(plan)
    return {"plans": plans, "missing": built.missing, "extra": built.extra, "ran": session.coverage.ran()}


def _configurations(
    session: Session, built: Built, base: dict[str, Any], first: Recorder, wanted: dict[str, Any]
) -> list[dict[str, Any]]:
    """Plans of the calls that are asked for, and of those for autotuners that launch only there."""
    plans, known, room = [], set(first.choices), trace_tuning.MOST_DEPENDENT
    todo = trace_tuning.taken(first.choices, wanted)
    for choice in todo:
        session.tuning.take(choice)
        with session.coverage.watching():
            rec = session.call(built, session.arguments())
        plans.append(rec.plan())
        dependent = list(trace_tuning.dependent(known, rec, choice))
        room -= len(dependent)
        if room < 0:
            message = "more configurations than can be followed belong to autotuners that launch only under others"
            base["findings"].append(trace_purity.finding(session, "too-many-steps", message, 0))
            break
        todo += dependent
    session.tuning.take({})
    return plans


def _measured(session: Session, built: Built, first: Recorder) -> list[tuple[str, dict[str, Any]]]:
    """The plan of a call in which nothing is tuned yet, if the file tunes kernels."""
    if not any(of > 1 for of in first.choices.values()):
        return []
    session.tuning.measuring = True
    try:
        return [(_MEASURING, session.call(built, session.arguments()).plan())]
    except (Exception, TraceEnd):
        return []  # a hook of the file's own that Triton alone can call
    finally:
        session.tuning.measuring = False


def _empty_plan() -> dict[str, Any]:
    return {
        "schema": "tilewright.plan/1",
        "buffers": [],
        "kernels": [],
        "steps": [],
        "output": {"kind": "none"},
        "choices": [],
        "regime": None,
        "findings": [],
    }


def _merge(into: list[dict[str, Any]], findings: list[dict[str, Any]]) -> None:
    into.extend(f for f in findings if f not in into)


def _bounded(response: dict[str, Any]) -> dict[str, Any]:
    """The response, or an error where it would be larger than a caller should read."""
    try:
        size = len(json.dumps(response, allow_nan=False))
    except (TypeError, ValueError) as exception:
        return error("untraceable", exception, None)
    if size <= MAX_BYTES:
        return response
    return error("untraceable", ValueError(f"the plan takes {size} bytes of JSON (at most {MAX_BYTES})"), None)
