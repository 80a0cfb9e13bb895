"""Candidates of one feature each for the tracer's tests: the frame around their code, and what is read from answers."""

from __future__ import annotations

import textwrap
from typing import Any

import torch
from trace_helper import signature_of, traced

HEAD = """
import functools, random, time
import torch, torch.nn as nn, triton, triton.language as tl

@triton.jit
def double(x, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    tl.store(o + i, tl.load(x + i, mask=m) * 2, mask=m)

def run(x, o=None):
    o = torch.empty_like(x) if o is None else o
    double[(triton.cdiv(x.numel(), 64),)](x, o, x.numel(), B=64)
    return o
"""

X = torch.empty(100, dtype=torch.float32)


def trace(body: str, inputs: Any = None, **more: Any) -> dict[str, Any]:
    """Traces HEAD followed by `body` on one float32 vector of 100 (or on `inputs`)."""
    options = {k: more.pop(k) for k in ("init", "model", "training") if k in more}
    signature = signature_of([X] if inputs is None else inputs, **options)
    return traced(HEAD + textwrap.dedent(body), signature, **more)


def forward(body: str, inputs: Any = None, **more: Any) -> dict[str, Any]:
    """The first plan of a module whose forward is `body`."""
    args = ", ".join(f"x{i or ''}" for i in range(1 if inputs is None else len(inputs)))
    return plan_of(module(body, args), inputs, **more)


def module(body: str, args: str = "x") -> str:
    """A `ModelNew` whose forward is `body`."""
    return f"class ModelNew(nn.Module):\n    def forward(self, {args}):\n" + textwrap.indent(
        textwrap.dedent(body), "        "
    )


def plan_of(body: str, inputs: Any = None, **more: Any) -> dict[str, Any]:
    """The first plan of a candidate that is HEAD followed by `body`."""
    return first(trace(body, inputs, **more))


def first(response: dict[str, Any]) -> dict[str, Any]:
    """The first plan of an answer."""
    assert "plans" in response, response
    return response["plans"][0]


def ops(plan: dict[str, Any]) -> list[str]:
    return [s["op"] for s in plan["steps"]]


def rules(plan: dict[str, Any]) -> list[tuple[str, str]]:
    return [(f["rule"], f["tier"]) for f in plan["findings"]]
