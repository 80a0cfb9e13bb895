"""Whether `forward` is a pure function of shapes, dtypes and modes: traced again, it must give the same plan."""

from __future__ import annotations

import gc
import re
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._pytree import tree_leaves

from . import trace_surroundings as surroundings
from .gradients import OUTPUT
from .trace_device import OTHER_DEVICES, DeviceProperties
from .trace_record import Recorder, TraceEnd

if TYPE_CHECKING:
    from .trace import Built, Session
    from .trace_state import Fingerprint

_process_time = time.process_time
_FIRST_CARD = re.compile(r"""cuda:0|cuda\(0\)|cuda["'], *0|device=0""")
"""A file that names the first card moves tensors to it from any other: what else it does with the index, the screen
sees."""
_SECONDS = 15.0
"""Of the processor, for all repetitions: a file whose calls take longer than some dozen fit into is not followed."""
_OTHER = "as another evaluator runs it (exec, several cards, flags, a stream of its own)"
_MAY_RAISE = ("with gradients enabled", "while a CUDA graph is captured", _OTHER)
"""There, writing to a parameter in place, synchronizing, or another card than cuda:0 may be an error."""
_ALONE = "without gradients, as for inference: forward alone must give the same outputs"
_LATER = 2
"""So many calls on the same inputs follow, to ten on one module: what counts calls often changes at 3 or 10."""


_TIERS = {
    "raw-pointer": "untraceable",
    "too-many-steps": "untraceable",
    "grad-mode": "evidence",
    "keeps-numbers": "evidence",
}


def finding(session: Session, rule: str, message: str, line: int) -> dict[str, Any]:
    """A finding about a lack of purity."""
    tier = _TIERS.get(rule, "proof")
    return {
        "rule": rule,
        "tier": tier,
        "message": message[:500],
        "line": line,
        "help": "Do the same for the same shapes, dtypes and modes.",
    }


def repeat(session: Session, built: Built, call: Any, base: dict[str, Any], state: Fingerprint) -> list[dict[str, Any]]:
    """Traces `forward` under other circumstances; findings where the plan is not the same. `state` looks at what calls
    on the same inputs leave behind.
    """
    findings: list[dict[str, Any]] = []
    started, complete = _process_time(), True

    def in_time() -> bool:
        nonlocal complete
        complete = complete and _process_time() - started < _SECONDS
        return complete

    def again(what: str, rule: str, make: Any) -> None:
        try:
            rec = make()
        except TraceEnd:
            return
        except Exception as exception:
            if what in _MAY_RAISE:
                return  # nothing runs it so
            message = f"{what}, forward raises {type(exception).__name__}: {exception}"
            findings.append(finding(session, rule, message, 0))
            return
        findings.extend(f for f in rec.findings if f not in findings)
        line = difference(base, rec.plan())
        if line is not None:
            findings.append(finding(session, rule, f"{what}, forward does something else", line))

    again("in a second call on the same inputs", "hidden-state", lambda: session.call(built, call))
    findings += _kept(session)
    state.look()
    moved_rule = "raw-pointer" if session.pointers_read and not findings else "hidden-state"
    circumstances = [
        ("on inputs at other addresses", moved_rule, lambda: session.call(built, session.arguments())),
        ("in a fresh module under other seeds, arguments and environment", "hidden-state", lambda: _elsewhere(session)),
        (_OTHER, "hidden-state", lambda: _evaluated(session)),
        ("two hours later", "hidden-state", lambda: _when(session, built, seconds=7200.0)),
        ("by a slow clock", "hidden-state", lambda: _when(session, built, tick=60.0)),
        ("by a fast clock", "hidden-state", lambda: _when(session, built, tick=1e-6)),
        ("while a CUDA graph is captured", "hidden-state", lambda: _captured(session, built)),
    ]
    if session.signature.get("gradients") is None:
        circumstances.append(("with gradients enabled", "grad-mode", lambda: _differentiated(session, built)))
    for circumstance in circumstances:
        if in_time():
            again(*circumstance)
    state.skip()
    for _ in range(_LATER):
        if in_time():
            again("in a later call on the same inputs", "hidden-state", lambda: session.call(built, call))
    state.look()
    if not complete:
        message = "forward keeps the processor busy for so long that it cannot be called under all circumstances"
        findings.append(finding(session, "too-many-steps", message, 0))
    return findings


def _kept(session: Session) -> list[dict[str, Any]]:
    """A tensor that the last call made and that lives on is kept somewhere, wherever that is."""

    def alive() -> bool:
        return any(not ref.expired() for ref in session.made.values())

    if not alive():
        return []
    gc.collect()  # it may only be part of a cycle
    if not alive():
        return []
    return [finding(session, "hidden-state", "a tensor that forward made is still there after the call", 0)]


def _when(session: Session, built: Built, seconds: float = 0.0, tick: float | None = None) -> Recorder:
    """A call later, or by a clock that goes on by `tick` seconds from one look to the next."""
    session.conditions.seconds += seconds
    session.conditions.tick = tick
    try:
        return session.call(built, session.arguments())
    finally:
        session.conditions.tick = None


def _captured(session: Session, built: Built) -> Recorder:
    session.streams.capturing = True
    try:
        return session.call(built, session.arguments())
    finally:
        session.streams.capturing = False


def _differentiated(session: Session, built: Built) -> Recorder:
    """With gradients for the inputs too, where they can have any."""
    args, inputs = session.arguments()
    for leaf in tree_leaves(args):
        if isinstance(leaf, torch.Tensor) and leaf.dtype.is_floating_point:
            leaf.requires_grad_(True)
    with session.coverage.watching():
        return session.call(built, (args, inputs), grad=True)


def in_other_modes(session: Session, built: Built, base: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The plans of calls with gradients enabled and in inference mode, where they differ: they must be right too."""
    if session.signature.get("gradients") is not None:
        return
    if any(found["rule"] == "grad-mode" for found in base["findings"]):
        yield from _variant(base, "with gradients enabled", lambda: _differentiated(session, built))
    yield from _variant(base, "in inference mode", lambda: _inferring(session, built))


def _variant(base: dict[str, Any], what: str, make: Callable[[], Recorder]) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        plan = make().plan()
    except (Exception, TraceEnd):
        return  # it says that it is not for that
    if difference(base, plan) is not None:
        yield what, plan


def _inferring(session: Session, built: Built) -> Recorder:
    with torch.inference_mode(), session.coverage.watching():
        return session.call(built, session.arguments())


def without_gradients(session: Session, built: Built, base: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The plan of a call whose outputs come from `forward` alone, as for inference, and whose gradients from a second
    `forward`; where the problem asks for gradients and `forward` alone does something else than what precedes them.

    Not where two calls in a row are more than one: a state that moves on, random numbers.
    """
    signature = session.signature
    moves = any(entry["name"] not in signature["parameters"] for entry in signature["state"])
    if signature.get("gradients") is None or moves or any(step["op"] == "random" for step in base["steps"]):
        return
    try:
        with session.coverage.watching():
            alone = session.call(built, session.arguments(), grad=False).plan()
        base["findings"] += [f for f in alone["findings"] if f not in base["findings"]]
        same = all(alone[key] == base[key][: len(alone[key])] for key in ("buffers", "kernels", "steps"))
        if not same or alone["output"] != dict(base["output"].get("items", [])).get(OUTPUT):
            yield _ALONE, session.call(built, session.arguments(), alone=True).plan()
    except (Exception, TraceEnd):
        return  # it says that it is for training alone


def _elsewhere(session: Session) -> Recorder:
    with surroundings.elsewhere(session):
        built = session.build()
        args, inputs = session.arguments()
        versioned = [leaf for leaf in tree_leaves(args) if isinstance(leaf, torch.Tensor)]
        torch._C._autograd._unsafe_set_version_counter(versioned, [3] * len(versioned))
        return session.call(built, (args, inputs))


def _evaluated(session: Session) -> Recorder:
    """A file may not run in all of it: one that names `cuda:0` not on another card, one that registers operators not
    a second time in a process. It is asked for less then."""
    session.changes = session.snapshot.findings(session)  # a second import may undo what the first one set
    attempts = [(1, surroundings.executed), (0, surroundings.executed), (0, surroundings.renamed)]
    for index, names in attempts[1:] if _FIRST_CARD.search(session.source.text) else attempts:
        try:
            with session.coverage.watching(), surroundings.other_evaluator(session, index), names(session):
                return session.call(session.build(), session.arguments())
        except Exception:
            if names is surroundings.renamed:
                raise
    raise AssertionError("the last attempt returns or raises")


def on_other_cards(session: Session, base: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The plans that `forward` makes on other devices, where they are not the target's, each with the device's name.

    One device always, if the file asks what the device is; more while there are calls that no trace has run.
    """
    for number, figures in enumerate(OTHER_DEVICES):
        if not session.card.asked or (number > 0 and not session.coverage.wants_more()):
            return
        try:
            rec = _on_card(session, figures)
        except (Exception, TraceEnd):
            continue  # it says that it cannot run there
        plan = rec.plan()
        if difference(base, plan) is not None:
            yield f"on another device: {figures.name}", plan


def _on_card(session: Session, figures: DeviceProperties) -> Recorder:
    with surroundings.other_card(session, figures), session.coverage.watching():
        return session.call(session.build(), session.arguments())


def difference(a: dict[str, Any], b: dict[str, Any]) -> int | None:
    """Line of the first step in which two plans differ (0 where a step is missing); None if they are the same."""
    for mine, other in zip(a["steps"], b["steps"], strict=False):
        if mine != other:
            return other["line"] or mine["line"]
    if len(a["steps"]) != len(b["steps"]):
        longer = max(a["steps"], b["steps"], key=len)
        return longer[min(len(a["steps"]), len(b["steps"]))]["line"]
    same = all(a[key] == b[key] for key in ("buffers", "kernels", "output", "choices"))
    return None if same else 0
