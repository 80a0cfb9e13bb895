"""Rules of recurrent layers: the input's products for all steps at once, then one kernel for each step."""

from __future__ import annotations

from typing import Any

from tilewright.teacher import ir
from tilewright.teacher.ir import Lazy, Template
from tilewright.teacher.lower import Lowering
from tilewright.teacher.ops_template import linear
from tilewright.teacher.ops_view import join
from tilewright.teacher.rules import lowers
from tilewright.teacher.sizes import Unsupported

GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


@lowers("lstm", "gru", "rnn_tanh", "rnn_relu")
def recurrent(
    lowering: Lowering,
    x: Lazy,
    hx: Any,
    params: list[Lazy],
    biases: bool,
    layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> Any:
    """Layers of either direction over a padded sequence."""
    kind = lowering.label
    if not isinstance(biases, bool):
        raise Unsupported(f"{kind} of packed sequences")
    if dropout and train and layers > 1:
        raise Unsupported(f"{kind} with dropout between layers")
    initial = hx if kind == "lstm" else [hx]
    directions, each = (2 if bidirectional else 1), (4 if biases else 2)
    if len(params) != layers * directions * each:
        raise Unsupported(f"{kind} with projections")
    if not batch_first:
        x = lowering.view(x, lambda v: v.permute([1, 0, 2]))
    last: list[list[Lazy]] = [[], []]
    for layer in range(layers):
        results = []
        for direction in range(directions):
            unit = layer * directions + direction
            weights = params[unit * each : (unit + 1) * each]
            start = [lowering.view(s, lambda v, u=unit: v.select(0, ir.sympy.Integer(u))) for s in initial]
            out, ends = sweep(lowering, kind, x, start, weights, reverse=direction == 1)
            results.append(out)
            for at, end in enumerate(ends):
                last[at].append(end)
        x = join(lowering, [lowering.realise(r) if len(results) > 1 else r for r in results], 2)
    output = x if batch_first else lowering.view(x, lambda v: v.permute([1, 0, 2]))
    lowering.label = kind
    ends = [stacked(lowering, parts) for parts in last if parts]
    return [output, *ends]


def stacked(lowering: Lowering, parts: list[Lazy]) -> Lazy:
    from tilewright.teacher.builder import unsqueeze

    return join(lowering, [unsqueeze(p, 0) for p in parts], 0)


def sweep(lowering: Lowering, kind: str, x: Lazy, start: list[Lazy], weights: list[Lazy], reverse: bool) -> Any:
    """One direction of one layer on (batch, time, width): outputs in the input's order, and the last states."""
    weight_in, weight_hidden = weights[:2]
    bias_in, bias_hidden = weights[2:] if len(weights) == 4 else (None, None)
    gates = linear(lowering, x, weight_in, bias_in)
    gates = lowering.realise(gates, "gates")
    if reverse:
        gates = lowering.view(gates, lambda v: v.flip(1))
    batch, time = x.shape[0], x.shape[1]
    width = weight_hidden.shape[1]
    views = {"gates": gates.term.view, "weight": lowering.memory(weight_hidden)}
    if bias_hidden is not None:
        views["bias"] = lowering.memory(bias_hidden)
    for name, value in zip(("start", "start_cell"), start, strict=False):
        views[name] = lowering.memory(lowering.realise(value) if isinstance(value.term, ir.Const) else value)
    shape = (time + 1, batch, width)
    outs = [lowering.temp(shape, x.dtype, "states")]
    if kind == "lstm":
        outs.append(lowering.temp(shape, x.dtype, "cells"))
    attrs = {"kind": kind, "batch": batch, "time": time, "width": width}
    lowering.add(Template(kind, outs, "recurrent", views, attrs))
    states = [lowering.read(o) for o in outs]
    output = lowering.view(states[0], lambda v: v.slice(0, ir.ONE, time).permute([1, 0, 2]))
    if reverse:
        output = lowering.view(output, lambda v: v.flip(1))
    ends = [lowering.view(s, lambda v: v.select(0, time)) for s in states]
    return output, ends
