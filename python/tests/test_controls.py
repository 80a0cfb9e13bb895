"""The controls job: what each control leaves, and the dispatch modes behind it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from support import call
from tilewright.cell import controls, oracle
from tilewright.cell.controls_modes import ROUNDING, Intermediates, Rounding, lower_precisions
from tilewright.cell.oracle_values import NAMES

oracle.warm()

PROBLEM = """
import torch
import torch.nn as nn
import torch.nn.functional as F

class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.proj = nn.Linear(features, features)
        self.register_buffer("seen", torch.zeros(features))

    def forward(self, x, y):
        self.seen += x.mean(0)
        return F.gelu(self.proj(x)) + y, x.argmax(1)

def get_inputs():
    return [torch.randn(6, 8), torch.randn(8)]

def get_init_inputs():
    return [8]
"""


class Answer:
    """A controls job's answer, with the tensors of its data file."""

    def __init__(self, document: dict[str, Any], data: Path) -> None:
        assert "error" not in document, document
        self.document = document
        self.bytes = data.read_bytes()

    def calls(self, name: str, trial: int = 0) -> list[dict[str, torch.Tensor]]:
        """A control's tensors by path, call by call."""
        calls = self.document["oracle"]["cases"][0]["trials"][trial]["calls"]
        blobs = self.document["results"][0][trial][name]
        return [self._tensors(call["expected"]["tensors"], of) for call, of in zip(calls, blobs, strict=True)]

    def expected(self, trial: int = 0) -> list[dict[str, torch.Tensor]]:
        calls = self.document["oracle"]["cases"][0]["trials"][trial]["calls"]
        tensors = [call["expected"]["tensors"] for call in calls]
        return [self._tensors(of, [tensor["native"] for tensor in of]) for of in tensors]

    def _tensors(self, tensors: list[dict[str, Any]], blobs: list[Any]) -> dict[str, torch.Tensor]:
        found = {}
        for tensor, blob in zip(tensors, blobs, strict=True):
            if blob is not None:
                raw = bytearray(self.bytes[blob["offset"] : blob["offset"] + blob["nbytes"]])
                flat = torch.frombuffer(raw, dtype=NAMES[tensor["dtype"]])
                found[tensor["path"]] = flat.reshape(tensor["shape"])
        return found


@pytest.fixture
def ask(tmp_path: Path) -> Any:
    def ask(text: str, **changes: Any) -> Answer:
        path, data = tmp_path / "problem.py", tmp_path / "data"
        path.write_text(text)
        request = {"problem": str(path), "seed": 3, "trials": 2, "regimes": False, "device": "cpu", "threads": 1}
        request |= {"max_bytes": 1 << 30, "data": str(data), "state_rule": "random", "init_seed": 0} | changes
        return Answer(call(controls.run, request), data)

    return ask


def test_each_control_leaves_what_it_is_named_for(ask: Any) -> None:
    answer = ask(PROBLEM)
    expected, copy = answer.expected(), answer.calls("copy")
    for want, got in zip(expected, copy, strict=True):
        assert want.keys() == got.keys() == {"output[0]", "output[1]", "state.seen"}
        # State carries from the first call to the second.
        assert all(torch.equal(want[path], got[path]) for path in want)
    other, mean = answer.calls("other-seed"), answer.calls("mean-over-seeds")
    assert torch.equal(other[0]["output[0]"], other[1]["output[0]"]), "the same for every call"
    assert torch.equal(other[0]["output[0]"], answer.calls("other-seed", 1)[0]["output[0]"]), "and every trial"
    assert not torch.allclose(other[0]["output[0]"], expected[0]["output[0]"], atol=0.1)
    assert mean[0]["output[0]"].std() < 0.8 * other[0]["output[0]"].std()
    assert other[0].keys() == mean[0].keys() == {"output[0]", "output[1]"}
    # Without the last stage y is not added: what is left is gelu(proj(x)).
    skipped = answer.calls("skipped-stage")[0]["output[0]"]
    difference = expected[0]["output[0]"] - skipped
    assert torch.allclose(difference, difference[:1].expand_as(difference), atol=1e-5)
    # The first input has the output's shape, the second is broadcast; one column of the first fits the indices.
    assert answer.calls("input[0]")[0].keys() == {"output[0]", "output[1]"}
    assert torch.equal(answer.calls("input[1]")[0]["output[0]"][3], answer.calls("input[1]")[0]["output[0]"][0])
    for name, size in (("bf16", 2e-3), ("fp16", 2e-4)):
        got, want = answer.calls(name)[1]["output[0]"], expected[1]["output[0]"]
        error = (got - want).norm() / want.norm()
        assert size / 2 < error < size * 5, f"{name}: {error}"
        assert torch.equal(got, ROUNDING[name](got))
        assert torch.equal(answer.calls(name)[1]["state.seen"], ROUNDING[name](answer.calls(name)[1]["state.seen"]))


def test_draws_differ_in_the_copy_and_other_inputs_are_drawn_from_too(ask: Any) -> None:
    text = PROBLEM.replace("return F.gelu(self.proj(x)) + y, x.argmax(1)", "return F.dropout(x, 0.5)")
    answer = ask(text.replace("self.seen += x.mean(0)", ""), trials=1)
    assert answer.document["oracle"]["stochastic"]
    copy, expected = answer.calls("copy"), answer.expected()
    assert len(copy) == oracle.SAMPLES
    assert not any(torch.equal(a["output"], b["output"]) for a, b in zip(copy, expected, strict=True))
    other = answer.calls("other-seed")
    assert not torch.equal(other[0]["output"] == 0, other[1]["output"] == 0)


def test_what_cannot_be_is_told(ask: Any) -> None:
    integers = PROBLEM.replace("torch.randn(6, 8), torch.randn(8)", "torch.randint(9, (6, 8)), torch.randint(9, (8,))")
    integers = integers.replace("self.proj = nn.Linear(features, features)", "").replace(
        "zeros(features)", "zeros(8).long()"
    )
    integers = integers.replace("self.seen += x.mean(0)", "").replace("F.gelu(self.proj(x)) + y", "x.sum(1)")
    answer = ask(integers.replace("return x.sum(1), x.argmax(1)", "return x.sum(1)"))
    assert answer.document["inapplicable"].keys() == {"lower precision", "skipped-stage"}
    assert answer.document["reasons"] == {}


@pytest.mark.parametrize(
    ("dtype", "names"),
    [
        (torch.float64, ["fp32"]),
        (torch.float32, ["bf16", "fp16"]),
        (torch.float16, ["bf16"]),
        (torch.bfloat16, ["fp8"]),
        (torch.float8_e5m2, []),
        (None, []),
    ],
)
def test_lower_precisions(dtype: torch.dtype | None, names: list[str]) -> None:
    assert lower_precisions(dtype) == names


def test_three_bits_of_mantissa_are_those_of_float8() -> None:
    values = torch.randn(4096) * 8
    wanted = values.to(torch.float8_e4m3fn).float()
    normal = values.abs() > 2.0**-5
    assert torch.equal(ROUNDING["fp8"](values)[normal], wanted[normal])
    odd = torch.tensor([float("inf"), -float("inf"), float("nan"), 0.0, 1e30])
    rounded = ROUNDING["fp8"](odd)
    assert rounded[0] == odd[0] and rounded[1] == odd[1] and rounded[2].isnan() and rounded[3] == 0
    assert rounded[4].isfinite()


def test_rounding_reaches_what_is_written_in_place_and_returned_by_nobody() -> None:
    running, batch = torch.zeros(4), torch.randn(32, 4)
    target = torch.randn(4)
    with torch.no_grad(), Rounding(ROUNDING["bf16"]):
        torch.nn.functional.batch_norm(batch, running, torch.ones(4), training=True)
        target.mul_(1.2345)
    for tensor in (running, target):
        assert torch.equal(tensor, tensor.bfloat16().float()) and tensor.abs().sum() > 0


def test_the_last_stage_is_an_operation_that_computes() -> None:
    x = torch.randn(5, 7)
    with torch.no_grad(), Intermediates() as mode:
        chained = (x * 2).clamp(-0.1, 0.1).t().contiguous().t().half()
        in_place = (x + 1).exp_()
        alone = x.softmax(1)
        reduced = (x * 3).sum(1)
    before = mode.before_last(chained)
    assert before is not None and torch.equal(before, x * 2)
    before = mode.before_last(in_place)
    assert before is not None and torch.equal(before, x + 1)
    assert mode.before_last(x) is None
    # What came before is of other outputs; a reduction has nothing of its shape.
    assert mode.before_last(reduced) is None
    assert mode.before_last(alone) is not None


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ([4, 6], [4, 6]),
        ([4, 6], [6, 4]),
        ([4, 6], [3, 2]),
        ([1, 6], [4, 6]),
        ([6], [4, 6]),
        ([2, 4, 6], [4, 6]),
        ([4, 1], [4]),
    ],
)
def test_an_input_fits(given: list[int], wanted: list[int]) -> None:
    tensor = torch.arange(torch.Size(given).numel()).reshape(given)
    got = controls.fit(tensor, wanted)
    assert got is not None and list(got.shape) == wanted
    assert set(got.flatten().tolist()) <= set(tensor.flatten().tolist())


@pytest.mark.parametrize(("given", "wanted"), [([4, 6], [5, 6]), ([0, 3], [3]), ([3], [0])])
def test_an_input_does_not_fit(given: list[int], wanted: list[int]) -> None:
    assert controls.fit(torch.zeros(given), wanted) is None
