"""The init job: a candidate's `__init__` run for real on the CPU, its tensors under the tracer's paths."""

from __future__ import annotations

import os
import tempfile
import textwrap
from typing import Any

import torch
from tilewright.cell import init
from trace_helper import in_child, signature_of, traced

HEAD = """
import torch, torch.nn as nn, triton, triton.language as tl

@triton.jit
def one(x):
    tl.store(x, 1.0)
"""

CANDIDATE = """
TABLE = torch.arange(3, device="cuda")

class Block(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.w = nn.Parameter(torch.randn(n))

class ModelNew(nn.Module):
    def __init__(self, n, scale=1.0):
        super().__init__()
        self.lin = nn.Linear(n, 2).to("cuda")
        self.blocks = [Block(n).cuda(), Block(n)]
        self.seq = nn.Sequential(Block(n))
        self.tables = {"a": torch.full((2, 3), scale).t()}
        self.register_buffer("mask", torch.ones(n, dtype=torch.bool, device="cuda"), persistent=False)
        self.half = torch.zeros(2, dtype=torch.bfloat16)

    def forward(self, x):
        for t in (TABLE, self.blocks[0].w, self.seq[0].w, self.mask):
            one[(1,)](t.cuda())
        return x
"""


def run(text: str, signature: dict[str, Any], seeds: list[int], **more: Any) -> tuple[dict[str, Any], bytes]:
    with tempfile.TemporaryDirectory() as scratch:
        data = os.path.join(scratch, "data")
        request = {"source": HEAD + textwrap.dedent(text), "signature": signature, "seeds": seeds, "data": data} | more
        response = in_child(init.run, request, scratch)
        content = b""
        if os.path.exists(data):
            with open(data, "rb") as file:
                content = file.read()
        return response, content


def tensor(response: dict[str, Any], data: bytes, path: str, seed: int = 0) -> torch.Tensor:
    entry = next(t for t in response["tensors"] if t["path"] == path)
    blob = entry["blobs"][seed]
    chunk = bytearray(data[blob["offset"] : blob["offset"] + blob["nbytes"]])
    return torch.frombuffer(chunk, dtype=getattr(torch, entry["dtype"])).reshape(entry["shape"])


def test_the_tensors_are_those_that_the_seed_gives():
    response, data = run(CANDIDATE, signature_of([torch.empty(4)], [4]), [7, 8])
    torch.manual_seed(7)
    want = torch.nn.Linear(4, 2)
    assert torch.equal(tensor(response, data, "lin.weight"), want.weight)
    assert torch.equal(tensor(response, data, "lin.bias"), want.bias)
    assert torch.equal(tensor(response, data, "blocks[0].w"), torch.randn(4))
    torch.manual_seed(8)
    assert torch.equal(tensor(response, data, "lin.weight", 1), torch.nn.Linear(4, 2).weight)
    assert tensor(response, data, 'tables["a"]').tolist() == [[1.0, 1.0]] * 3
    assert tensor(response, data, "::TABLE").tolist() == [0, 1, 2]
    assert tensor(response, data, "mask").tolist() == [True] * 4
    assert all(len(t["blobs"]) == 2 for t in response["tensors"])


def test_paths_are_the_tracer_s():
    signature = signature_of([torch.empty(4)], [4])
    response, _ = run(CANDIDATE, signature, [0])
    paths = {t["path"] for t in response["tensors"]}
    plan = traced(HEAD + CANDIDATE, signature)["plans"][0]
    constants = {b["source"]["path"] for b in plan["buffers"] if b["source"]["kind"] == "constant"}
    assert constants == {"::TABLE", "blocks[0].w", "seq.0.w", "mask"}
    assert constants <= paths


def test_failures_are_answers():
    signature = signature_of([torch.empty(4)], [4])
    response, _ = run(
        "class ModelNew(nn.Module):\n    def __init__(self, n):\n        raise KeyError(n)", signature, [0]
    )
    assert (response["error"]["kind"], response["error"]["type"]) == ("exception", "KeyError")
    body = "class ModelNew(nn.Module):\n    def __init__(self, n):\n        one[(1,)](torch.empty(n))"
    assert run(body, signature, [0])[0]["error"]["kind"] == "untraceable"
    assert run("class ModelNew(", signature, [0])[0]["error"]["kind"] == "syntax"
    assert run("x = 1", signature, [0])[0]["error"]["type"] == "NameError"
    tensors = signature_of([], [torch.empty(3)])
    assert run("class ModelNew(nn.Module):\n    pass", tensors, [0])[0]["error"]["kind"] == "unsupported"


NORM = """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(4))
        self.shift = nn.Parameter(torch.zeros(SHAPE))
        self.folded = self.gain.detach() * 3
        self.one = nn.Parameter(torch.full((1,), 7.0))
        self.register_buffer("space", torch.zeros(64))
"""


def test_fixed_weights_are_changed_where_the_reference_has_them() -> None:
    fixed = [["torch.float32 [4] 1.0", True], ["torch.float32 [4] 0.0", True]]
    signature = signature_of([torch.empty(4)], [])
    for shape, rule in (("4", "each"), ("2, 2", "same")):
        response, data = run(NORM.replace("SHAPE", shape), signature, [7, 8], fixed=fixed, rule=None)
        assert response["rule"] == rule
        gain, shift, folded = (tensor(response, data, name, 2) for name in ("gain", "shift", "folded"))
        assert tensor(response, data, "gain", 1).tolist() == [1.0] * 4 and bool((gain != 1).all())
        assert bool((shift != 0).all()) and torch.equal(folded, gain * 3)
        assert len(set(gain.tolist())) == (4 if rule == "each" else 1)
        # What the reference does not write is the candidate's own, and so is a workspace.
        assert tensor(response, data, "one", 2).tolist() == [7.0]
        assert tensor(response, data, "space", 2).tolist() == [0.0] * 64
