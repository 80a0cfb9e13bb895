"""The oracle, on small problem files: what it computes, and what it says about problems that are no good."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from support import call
from tilewright.cell import oracle
from tilewright.cell.oracle_values import NAMES

oracle.warm()  # in the parent, as the zygote does

HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"


class Answer:
    """An oracle's answer with its data file."""

    def __init__(self, document: dict[str, Any], data: Path) -> None:
        self.document = document
        self.bytes = data.read_bytes() if data.exists() else b""

    def __getattr__(self, name: str) -> Any:
        return self.document[name]

    def trials(self, case: int = 0) -> list[dict[str, Any]]:
        return self.cases[case]["trials"]

    def blob(self, blob: dict[str, int], dtype: str, shape: list[int] | None = None) -> torch.Tensor:
        assert blob["offset"] % 64 == 0
        raw = bytearray(self.bytes[blob["offset"] : blob["offset"] + blob["nbytes"]])
        assert len(raw) == blob["nbytes"]
        flat = torch.frombuffer(raw, dtype=NAMES[dtype]) if raw else torch.empty(0, dtype=NAMES[dtype])
        return flat.reshape(shape if shape is not None else [-1])

    def input(self, call: dict[str, Any], index: int = 0) -> torch.Tensor:
        ref = self.cases[0]["signature"]["args"][index]
        flat = self.blob(call["inputs"][ref["buffer"]], ref["dtype"])
        return flat.as_strided(ref["shape"], ref["strides"], ref["offset"] // flat.element_size())

    def state(self, trial: dict[str, Any], case: int = 0) -> dict[str, torch.Tensor]:
        entries = self.cases[case]["signature"]["state"]
        return {e["name"]: self.blob(b, e["dtype"], e["shape"]) for e, b in zip(entries, trial["state"], strict=True)}

    def expected(self, call: dict[str, Any], path: str = "output", wide: bool = False) -> torch.Tensor:
        tensor = next(t for t in call["expected"]["tensors"] if t["path"] == path)
        if wide:
            return self.blob(tensor["float64"], "float64", tensor["shape"])
        return self.blob(tensor["native"], tensor["dtype"], tensor["shape"])


@pytest.fixture
def ask(tmp_path: Path) -> Any:
    def ask(text: str | bytes, **changes: Any) -> Answer:
        path = tmp_path / "problem.py"
        path.write_bytes(text if isinstance(text, bytes) else (HEAD + text).encode())
        request = {
            "problem": str(path),
            "seed": 7,
            "trials": 2,
            "regimes": False,
            "device": "cpu",
            "max_bytes": 1 << 30,
            "threads": 1,
            "data": str(tmp_path / "data"),
            "state_rule": "random",
            "init_seed": 0,
        }
        return Answer(call(oracle.run, request | changes), tmp_path / "data")

    return ask


LINEAR = """
class Model(nn.Module):
    def __init__(self, n, bias=True):
        super().__init__()
        self.linear = nn.Linear(n, 3, bias=bias)
        self.norm = nn.BatchNorm1d(3)
    def forward(self, x):
        return self.norm(self.linear(x))
def get_inputs():
    return [torch.randn(8, 5)]
def get_init_inputs():
    return [[5], {"bias": True}]
"""


def test_values_are_those_of_the_module_with_the_given_weights(ask: Any) -> None:
    answer = ask(LINEAR)
    signature = answer.cases[0]["signature"]
    assert signature["init_args"] == [{"kind": "number", "value": 5}]
    assert signature["init_kwargs"] == [["bias", {"kind": "number", "value": True}]]
    assert signature["training"] is True
    assert signature["parameters"] == ["linear.weight", "linear.bias", "norm.weight", "norm.bias"]
    assert answer.defect is None and answer.no_float64 is None and not answer.stochastic
    assert [trial["regime"] for trial in answer.trials()] == ["seed", "seed"]
    for trial in answer.trials():
        linear, norm = torch.nn.Linear(5, 3), torch.nn.BatchNorm1d(3)
        model = torch.nn.Sequential(linear, norm)
        state = answer.state(trial)
        renamed = zip(model.state_dict(), state.values(), strict=True)
        model.load_state_dict({name: value.clone() for name, value in renamed})
        for made in trial["calls"]:  # the running statistics carry from call to call
            output = model(answer.input(made))
            torch.testing.assert_close(answer.expected(made), output.detach())
            torch.testing.assert_close(answer.expected(made, "state.norm.running_mean"), norm.running_mean)
            torch.testing.assert_close(answer.expected(made, "state.norm.running_var"), norm.running_var)
            assert int(answer.expected(made, "state.norm.num_batches_tracked")) == int(norm.num_batches_tracked)
            error = answer.expected(made, wide=True) - output.detach()
            assert 0 < error.abs().max() < 1e-5


def test_weights_and_inputs_are_fresh_in_every_trial_and_follow_the_seed(ask: Any) -> None:
    answer, again, other = ask(LINEAR), ask(LINEAR), ask(LINEAR, seed=8)
    assert answer.bytes == again.bytes and answer.document == again.document
    assert answer.bytes != other.bytes
    first, second = answer.trials()
    for name, value in answer.state(first).items():
        if value.is_floating_point():
            assert not torch.equal(value, answer.state(second)[name]), name
            assert value.unique().numel() > 1, name
    assert bool((answer.state(first)["norm.running_var"] > 0).all())
    inputs = [answer.input(made) for trial in answer.trials() for made in trial["calls"]]
    assert len({tuple(x.flatten().tolist()) for x in inputs}) == 4


def test_the_init_rule_gives_the_weights_of_the_constructor(ask: Any) -> None:
    answer = ask(LINEAR, state_rule="init", init_seed=99)
    torch.manual_seed(99)
    linear = torch.nn.Linear(5, 3)
    for trial in answer.trials():
        state = answer.state(trial)
        assert torch.equal(state["linear.weight"], linear.weight)
        assert torch.equal(state["linear.bias"], linear.bias)
        assert torch.equal(state["norm.weight"], torch.ones(3))


def test_evaluation_mode_and_cases(ask: Any) -> None:
    text = """
ROWS, P = 6, 0.5
TRAINING = False
CASES = [{"ROWS": 1, "name": "one row"}, {"ROWS": 3, "P": 0.1}]
class Model(nn.Module):
    def forward(self, x):
        return F.dropout(x, P, self.training) * 2
def get_inputs():
    return [torch.randn(ROWS, 4)]
"""
    answer = ask(text)
    labels = [case["signature"]["case"] for case in answer.cases]
    assert labels == ["default", "one row", "ROWS=3,P=0.1"]
    assert [len(case["trials"]) for case in answer.cases] == [2, 1, 1]
    assert answer.cases[1]["signature"]["args"][0]["shape"] == [1, 4]
    assert answer.cases[0]["signature"]["training"] is False
    assert not answer.stochastic
    broken = ask(text.replace("0.1}]", "0.1}, {'NOPE': 1}]"))
    assert broken.error["kind"] == "problem" and "NOPE" in broken.error["message"]


def test_structure_aliases_and_modified_inputs(ask: Any) -> None:
    text = """
from collections import namedtuple
Pair = namedtuple("Pair", "first second")
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(4))
    def forward(self, x, items, scale, name):
        self.total += x.sum(0)
        x.mul_(scale)
        return {"pair": Pair(x.t(), items[0].argmax(1)), "n": 3, "views": [self.total, items[1].half()]}
def get_inputs():
    base = torch.randn(6, 10)
    return [base[:, 2:6], [torch.randn(2, 3), torch.randn(3).double()], 0.5, "mode"]
"""
    answer = ask(text)
    signature = answer.cases[0]["signature"]
    assert signature["buffers"] == [240, 24, 24]
    first = signature["args"][0]
    assert (first["strides"], first["offset"], first["shape"]) == ([10, 1], 8, [6, 4])
    assert signature["args"][2:] == [{"kind": "number", "value": 0.5}, {"kind": "str", "value": "mode"}]
    made = answer.trials()[0]["calls"][1]
    output = made["expected"]["output"]
    assert output["kind"] == "dict"
    assert [key for key, _ in output["items"]] == ["pair", "n", "views"]
    assert output["items"][0][1]["kind"] == "tuple"
    tensors = {tensor["path"]: tensor for tensor in made["expected"]["tensors"]}
    assert list(tensors) == [
        'output["pair"][0]',
        'output["pair"][1]',
        'output["views"][0]',
        'output["views"][1]',
        "input[0]",
        "state.total",
    ]
    assert tensors['output["pair"][0]']["alias"] == "input[0]"
    assert tensors['output["pair"][1]']["alias"] is None
    assert tensors['output["pair"][1]']["float64"] is None
    assert tensors['output["views"][0]']["alias"] == "state.total"
    assert tensors['output["views"][1]']["dtype"] == "float16"
    before = answer.blob(made["inputs"][0], "float32").reshape(6, 10)
    after = answer.expected(made, "input[0]").reshape(6, 10)
    torch.testing.assert_close(after[:, 2:6], before[:, 2:6] * 0.5)
    assert torch.equal(after[:, :2], before[:, :2])
    assert torch.equal(answer.expected(made, 'output["pair"][0]'), after[:, 2:6].t())


@pytest.mark.parametrize(
    ("body", "moved"),
    [
        ("return x.t().contiguous()", True),
        ("return torch.cat([x, torch.zeros_like(x)], 1).half()", True),
        ("y = torch.empty_like(x); y.copy_(x); return y.view(-1)", True),
        ("y = x.clone(); y[0] = 1; return y", True),
        ("return x + 0", False),
        ("y = x.clone(); y.mul_(1); return y.view(-1)", False),
        ("return x[torch.argsort(x[:, 0])]", False),
        ("return x[torch.arange(3, -1, -1)]", True),
        ("return torch.tril(x).flip(1)", True),
        ("return torch.where(torch.arange(5) < 3, x, 0)", True),
        ("return x.masked_fill(torch.arange(5) < 3, 0.0)", True),
        ("return torch.where(torch.arange(5) < 3, x, 2 * x)", False),
        ("return x.index_select(1, x[0].argsort())", False),
        ("return F.interpolate(x[None, None], scale_factor=2)", True),
        ("return torch.where(x > 0, x, 0 * x)", False),
        ("y = torch.empty_like(x); torch.neg(x, out=y); return y", False),
    ],
)
def test_what_only_moves_data_is_known(ask: Any, body: str, moved: bool) -> None:
    answer = ask(
        f"import torch.nn.functional as F\nclass Model(nn.Module):\n    def forward(self, x):\n        {body}\n"
        "def get_inputs():\n    return [torch.randn(4, 5)]\n"
    )
    assert answer.defect is None
    assert answer.trials()[0]["calls"][0]["expected"]["tensors"][0]["copy_only"] is moved


def model(forward: str, inputs: str = "[torch.randn(4, 5)]", init: str = "pass") -> str:
    return (
        f"class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n        {init}\n"
        f"    def forward(self, *args):\n        x = args[0] if args else None\n        {forward}\n"
        f"def get_inputs():\n    return {inputs}\n"
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (model("return x", init="raise KeyError('lost')"), ["__init__", "problem.py:7", "KeyError"]),
        (model("return x @ x"), ["forward", "problem.py:10", "RuntimeError"]),
        (model("return x", inputs="[1 / 0]"), ["get_inputs", "ZeroDivisionError"]),
        (model("raise SystemExit(3)"), ["forward", "SystemExit"]),
        (model("return torch.ones(3)"), ["ignores its inputs"]),
        (model("return x * float('nan')"), ["NaN or infinite"]),
        (model("return None"), ["no tensor"]),
        (model("return object()"), ["cannot be judged", "object"]),
        (model("return x.to(torch.complex64)"), ["cannot be judged", "complex64"]),
        (model("import os; return x * (1 + os.urandom(1)[0])"), ["varies from run to run"]),
        (model("return x[x > 0]", inputs="[torch.randn(40, 50)]"), ["depends on values", "float32 ["]),
        (model("return x * 2", inputs="[torch.randn(int(torch.randint(2, 90, ())))]"), ["other shapes"]),
    ],
)
def test_a_problem_that_cannot_tell_right_from_wrong_is_a_defect(ask: Any, text: str, words: list[str]) -> None:
    answer = ask(text)
    assert "error" not in answer.document, answer.document
    for word in words:
        assert word in answer.defect
    assert answer.cases == []


@pytest.mark.parametrize(
    ("content", "line", "words"),
    [
        (b"", None, "empty"),
        (b"   \n", None, "empty"),
        (b"\x7fELF\x02\x01\x00\xff\xfe", 1, "not UTF-8"),
        (b"a = 1\nb = '\0'\n", 2, "binary"),
        (b"def f(:\n", 1, "invalid syntax"),
        (b"import torch\nx = torch.nope\n", 2, "AttributeError"),
        (b"raise SystemExit\n", 1, "SystemExit"),
        (b"def get_inputs(): return []\n", None, "does not define Model"),
        (b"class Model: pass\n", None, "does not define get_inputs"),
        (b"class Model: pass\ndef get_inputs(): return [1]\n", None, "not a torch.nn.Module"),
        (b"x = 1\n" * 1_000_000, None, "larger than"),
    ],
)
def test_a_file_that_is_no_problem_is_an_error_with_its_line(ask: Any, content: bytes, line: Any, words: str) -> None:
    error = ask(content).error
    assert error["kind"] == "problem"
    assert words in error["message"] and "problem.py" in error["message"]
    assert error["line"] == line


def test_a_tensor_as_constructor_argument_is_unsupported(ask: Any) -> None:
    text = "class Model(nn.Linear): pass\ndef get_inputs(): return [torch.randn(2)]\n"
    text = text.replace("class Model(nn.Linear): pass", "class Model(nn.Module):\n    def __init__(self, t):\n"
                        "        super().__init__()\n    def forward(self, x):\n        return x + 1")  # fmt: skip
    error = ask(text + "def get_init_inputs(): return [torch.ones(2)]\n").error
    assert error["kind"] == "unsupported"


def test_a_missing_device_and_a_missing_file(ask: Any) -> None:
    assert ask(LINEAR, device="cuda:0").error["kind"] == "no-device"
    assert ask(LINEAR, problem="/nowhere/problem.py").error["kind"] == "problem"


def test_what_does_not_fit_is_left_out_before_it_runs(ask: Any) -> None:
    text = "N = 4\nCASES = [{'N': 1 << 14, 'name': 'huge'}]\n" + model("return x @ x.t()", "[torch.randn(N, N)]")
    answer = ask(text, max_bytes=100 << 20)
    assert len(answer.cases) == 1
    assert "huge is left out: it needs" in answer.notes[0] and "0.10 GiB are allowed" in answer.notes[0]
    error = ask(text.replace("N = 4", "N = 1 << 16"), max_bytes=1 << 30).error
    assert error["kind"] == "too-large" and "GiB" in error["message"]
    # The square needs 4 KiB an input: room for less than the 9 trials that are asked for.
    small = ask(model("return x @ x", "[torch.randn(32, 32)]"), max_bytes=200 << 10, trials=9, regimes=True)
    assert 0 < len(small.trials()) < 9
    assert any("trials fit" in note for note in small.notes)


REGIMES = ["scaled-1e-3", "scaled-1e3", "negative", "constant-rows", "large", "mixed-rows"]


def regimes(answer: Answer) -> list[str]:
    return [trial["regime"] for trial in answer.trials() if trial["regime"] != "seed"]


def test_value_regimes_change_the_floating_inputs(ask: Any) -> None:
    text = model("return F.relu(x) + args[1]", "[torch.randn(4, 6).t(), torch.randint(0, 9, (6, 1))]")
    answer = ask(text, regimes=True)
    assert regimes(answer) == REGIMES
    for trial in answer.trials()[2:]:
        (made,) = trial["calls"]
        x = answer.input(made)
        size = x.abs().median()
        assert {
            "scaled-1e-3": size < 0.01,
            "scaled-1e3": size > 100,
            "negative": bool((x <= 0).all()),
            "constant-rows": torch.equal(x, x[:, :1].expand_as(x)),
            "large": size > 10,
            "mixed-rows": bool((x[0] < -200).all() and (x[1] < -2e4).all() and (x[2] == 0).all())
            and bool((x[3].abs() < 1e-11).all() and (x[4] > 2e4).all() and (x[5] < -200).all()),
        }[trial["regime"]]
        assert bool((answer.input(made, 1) >= 0).all())
        torch.testing.assert_close(answer.expected(made), torch.relu(x) + answer.input(made, 1))


def test_constant_rows_are_normalised_alike_whatever_the_order_of_sums(ask: Any) -> None:
    """A variance of rounding alone, under a root, would tell one order of additions from another."""
    text = model(
        "return F.layer_norm(3 * x, (1000,), None, torch.full((1000,), 0.01, dtype=x.dtype))", "[torch.randn(64, 1000)]"
    )
    answer = ask(text, regimes=True)
    (trial,) = [trial for trial in answer.trials() if trial["regime"] == "constant-rows"]
    (made,) = trial["calls"]
    x, wanted = 3 * answer.input(made), answer.expected(made)
    orders = [x.sum(1), x.cumsum(1)[:, -1], x.flip(1).cumsum(1)[:, -1], x.view(64, 125, 8).sum(1).sum(1)]
    for total in orders:
        centred = x - (total / 1000)[:, None]
        found = centred * (centred.square().mean(1, keepdim=True) + 1e-5).rsqrt() + 0.01
        torch.testing.assert_close(found, wanted, rtol=1e-3, atol=0.0)


def test_large_values_between_which_rounding_chooses_are_dropped(ask: Any) -> None:
    tie = "[(a := torch.randn(5000, 2)), torch.cat((a[:1], torch.randn(4999, 2)))]"
    text = "return torch.softmax(1e3 * torch.stack(args, 2), 2)"
    found = ask(model(text, tie), regimes=True)
    assert "scaled-1e3" not in regimes(found)
    assert any("scaled-1e3 says nothing: output: rounding the inputs" in note for note in found.notes)
    assert "scaled-1e3" in regimes(ask(model("return torch.softmax(x, 1)"), regimes=True))


def test_a_regime_in_which_the_reference_breaks_down_is_dropped(ask: Any) -> None:
    assert regimes(ask(model("return x.log()", "[torch.rand(4, 5) + 0.1]"), regimes=True)) == [
        "scaled-1e-3",
        "scaled-1e3",
        "constant-rows",
        "large",
        "mixed-rows",
    ]
    half = ask(model("return x.sum(1)", "[torch.rand(4, 999).half() + 1]"), regimes=True)
    assert regimes(half) == ["scaled-1e-3", "negative", "constant-rows", "large", "mixed-rows"]
    assert len(half.notes) == 1
    integers = ask(model("return x + 1", "[torch.randint(0, 9, (4, 5))]"), regimes=True)
    assert regimes(integers) == [] and integers.notes == []


def test_rows_are_of_the_kinds_that_the_reference_stands(ask: Any) -> None:
    def kinds(forward: str, inputs: str = "[torch.randn(8, 40)]") -> torch.Tensor:
        answer = ask(model(forward, inputs), regimes=True)
        (trial,) = [trial for trial in answer.trials() if trial["regime"] == "mixed-rows"]
        return answer.input(trial["calls"][0])

    # A row of zeros has no direction, and what is below zero no logarithm.
    directions = kinds("return x / x.norm(dim=1, keepdim=True)")
    assert bool((directions != 0).any(1).all()) and bool((directions[1] < -2e4).all())
    logs = kinds("return x.log()", "[torch.rand(8, 40) + 0.1]")
    assert bool((logs[::2] > 0).all() and (logs[::2] < 1e-12).all() and (logs[1::2] > 2e4).all())
    # A tensor of one dimension has eight pieces.
    flat = kinds("return x + 1", "[torch.randn(800)]").reshape(8, 100)
    assert bool((flat[0] < -200).all() and (flat[1] < -2e4).all() and (flat[2] == 0).all())


def test_large_is_as_large_as_the_reference_stands(ask: Any) -> None:
    answer = ask(model("return x.exp()", "[torch.rand(6, 7) + 1]"), regimes=True)
    (trial,) = [trial for trial in answer.trials() if trial["regime"] == "large"]
    x = answer.input(trial["calls"][0])
    assert x.min() >= 30 and x.max() <= 60


@pytest.mark.parametrize(
    ("forward", "open_order"),
    [
        ("x.sort(1)[1]", True),
        ("x.topk(2)[1]", True),
        ("x.median(1)[1]", True),
        ("x.sort(dim=1, stable=True)[1]", False),
        ("x.max(1)[1]", False),
    ],
)
def test_equal_elements_are_no_question_where_torch_gives_them_in_any_order(
    ask: Any, forward: str, open_order: bool
) -> None:
    found = set(regimes(ask(model(f"return {forward}"), regimes=True)))
    assert {"constant-rows", "mixed-rows"} & found == (set() if open_order else {"constant-rows", "mixed-rows"})


def test_fixed_weights_get_numbers_of_their_own(ask: Any) -> None:
    init = (
        "self.eye = nn.Parameter(torch.eye(5)); self.table = nn.Parameter(torch.linspace(1, 2, 5)); "
        "self.q = nn.Parameter(torch.randn(5)); self.k = nn.Parameter(self.q.detach().clone()); "
        "self.register_buffer('mask', torch.tril(torch.ones(5, 5))); self.register_buffer('ones', torch.ones(5)); "
        "self.still = nn.Parameter(torch.tril(torch.ones(5, 5)), requires_grad=False)"
    )
    forward = "return (x @ self.eye @ self.mask @ self.still) * self.table * self.q * self.k * self.ones"
    answer = ask(model(forward, init=init))
    state = answer.state(answer.trials()[0])
    assert not torch.equal(state["eye"], torch.eye(5)) and bool((state["eye"] != 0).all())
    assert bool((state["table"] - torch.linspace(1, 2, 5)).abs().max() > 0.1)
    assert bool((state["q"] != state["k"]).any()) and bool((state["q"].sign() == state["k"].sign()).all())
    # A table in a buffer, and the zeros of what is not trained, are what others may compute.
    assert torch.equal(state["mask"], torch.tril(torch.ones(5, 5)))
    assert torch.equal(state["still"] != 0, torch.tril(torch.ones(5, 5)) != 0)
    assert len(set(state["ones"].tolist())) == 5


@pytest.mark.parametrize("rule", ["each", "same"])
def test_fixed_weights_change_while_the_constructor_runs(ask: Any, rule: str) -> None:
    init = (
        "self.norm = nn.LayerNorm(5); self.batch = nn.BatchNorm1d(5); self.gate = nn.Parameter(torch.full((5,), 0.5)); "
        "self.lin = nn.Linear(5, 5); "
        "self.register_buffer('made', self.norm.weight.detach() * 2 + self.norm.bias.detach())"
    )
    text = model("return self.batch(self.lin(self.norm(x))) * self.gate * self.made", init=init)
    plain = ask(text, state_rule="init", init_seed=7)
    changed = ask(text, state_rule="init", init_seed=7, init_rule=rule)
    assert (plain.cases[0]["changed"], changed.cases[0]["changed"]) == (False, True)
    before, after = plain.state(plain.trials()[0]), changed.state(changed.trials()[0])
    fixed = {
        "norm.weight",
        "norm.bias",
        "batch.weight",
        "batch.bias",
        "batch.running_mean",
        "batch.running_var",
        "gate",
    }
    for name in before:
        assert torch.equal(before[name], after[name]) != (name in fixed or name == "made"), name
    torch.testing.assert_close(after["made"], after["norm.weight"] * 2 + after["norm.bias"])
    values = [set(after[name].tolist()) for name in ("norm.weight", "batch.weight", "batch.running_var")]
    assert [len(v) for v in values] == ([5, 5, 5] if rule == "each" else [1, 1, 1])
    assert (values[0] == values[1]) == (rule == "same") and bool((after["batch.running_var"] > 0).all())


def test_outputs_that_share_memory_say_so(ask: Any) -> None:
    body = "y = x * 2; return y, y[1:], x * 3, x.sum(0).expand(4, 5), x"
    tensors = ask(model(body)).trials()[0]["calls"][0]["expected"]["tensors"]
    assert [t["alias"] for t in tensors] == [None, "output[0]", None, "output[3]", "input[0]"]


def test_numbers_that_are_drawn_are_drawn_once(ask: Any) -> None:
    drawn = ask(
        model("return x * args[1] + args[2][0]", "[torch.randn(4), torch.rand(()).item(), (torch.rand(()).item(),)]")
    )
    assert drawn.defect is None and any("drawn once" in note for note in drawn.notes)
    factor, offset = (drawn.cases[0]["signature"]["args"][i] for i in (1, 2))
    call = drawn.trials()[1]["calls"][1]
    want = drawn.input(call) * factor["value"] + offset["items"][0]["value"]
    torch.testing.assert_close(drawn.expected(call), want)
    # A choice between two ways is no number.
    assert "on each call" in ask(model("return x", "[torch.randn(4), torch.rand(()).item() < 0.5 or 'no']")).defect


def test_lazy_modules_have_their_weights(ask: Any) -> None:
    answer = ask(model("return self.lin(x)", init="self.lin = nn.LazyLinear(3)"))
    assert answer.defect is None and answer.state(answer.trials()[0])["lin.weight"].shape == (3, 5)


def test_a_stochastic_reference_gives_samples_on_equal_inputs(ask: Any) -> None:
    answer = ask(model("return F.dropout(x, 0.5)", "[torch.rand(64) + 1]"), regimes=True)
    assert answer.stochastic and "random" in answer.no_float64
    assert len(answer.trials()) == 2
    calls = answer.trials()[0]["calls"]
    assert len(calls) == oracle.SAMPLES
    assert all(made["inputs"] == calls[0]["inputs"] for made in calls)
    samples = torch.stack([answer.expected(made) for made in calls])
    kept = (samples != 0).double().mean()
    assert 0.4 < kept < 0.6
    assert samples[:, 0].unique().numel() == 2


@pytest.mark.parametrize(
    ("text", "wide", "why"),
    [
        (model("return (x.half() @ x.t().half()).float()"), False, "converts to float16 inside"),
        (model("return (x * 10).to(torch.float8_e4m3fn).float()"), False, "converts to float8_e4m3fn inside"),
        (model("return (x * 10).half()"), True, None),
        (model("return x.view(torch.int32).float()"), False, "reinterprets"),
        (model("return (x + 3e7) - 3e7"), False, "differ"),
        (model("return x * (1 if x.dtype == torch.float32 else 2)"), False, "differ"),
        # Nothing but rounding is left, of which a float64 run has less.
        (model("return (x - x.mean()).mean()", "[torch.randn(4, 64) + 1]"), True, None),
        (model("return torch.group_norm(x, 4).mean((1, 2))", "[torch.randn(4, 8, 50)]"), True, None),
        (model("return self.k * x", init="self.k = torch.tensor(2.0)"), True, None),
        (model("return x.float().pow(2).mean(-1).to(x.dtype)", "[torch.randn(4, 64).bfloat16()]"), True, None),
        (model("return x.argmax(1)"), True, None),
    ],
)
def test_float64_is_used_where_it_confirms_the_native_result(ask: Any, text: str, wide: bool, why: str | None) -> None:
    answer = ask(text)
    assert answer.defect is None
    if wide:
        assert answer.no_float64 is None
    else:
        assert why in answer.no_float64
    tensor = answer.trials()[0]["calls"][0]["expected"]["tensors"][0]
    assert (tensor["float64"] is not None) == (wide and tensor["dtype"] != "int64")


def test_torch_defaults_are_pinned(ask: Any) -> None:
    text = "torch.set_default_dtype(torch.float16)\ntorch.backends.cuda.matmul.allow_tf32 = True\n"
    text += model("assert not torch.backends.cuda.matmul.allow_tf32; assert not torch.is_grad_enabled(); return x + 1")
    answer = ask(text)
    assert answer.defect is None
    assert answer.cases[0]["signature"]["args"][0]["dtype"] == "float32"


def test_perturbed_weights_do_not_break_the_reference(ask: Any) -> None:
    init = "self.register_buffer('scale', torch.zeros(5)); self.w = nn.Parameter(torch.zeros(5))"
    answer = ask(model("return (x * self.w) / (self.scale == 0)", init=init))
    trial = answer.trials()[0]
    assert torch.equal(answer.state(trial)["scale"], torch.zeros(5))
    assert bool(answer.expected(trial["calls"][0]).isfinite().all())
    assert not torch.equal(answer.state(trial)["w"], torch.zeros(5))


def test_counters_have_counted_before(ask: Any) -> None:
    init = """self.register_buffer('calls', torch.zeros((), dtype=torch.int64))
        self.register_buffer('heads', torch.tensor(5))"""
    forward = "self.calls += 1; return x / self.calls.clamp(max=7).view(-1, self.heads // 5)"
    answer = ask(model(forward, init=init))
    starts = [int(answer.state(trial)["calls"]) for trial in answer.trials()]
    assert len(set(starts)) > 1 and max(starts) > 0
    assert all(int(answer.state(trial)["heads"]) == 5 for trial in answer.trials())


def test_a_counter_that_must_start_at_zero_does(ask: Any) -> None:
    init = "self.register_buffer('at', torch.zeros((), dtype=torch.int64)); self.b = nn.Parameter(torch.zeros(5))"
    answer = ask(
        model("self.at.add_(1).remainder_(4); return x[self.at] + self.b if int(self.at) < 4 else 1 / 0", init=init)
    )
    assert any(not torch.equal(answer.state(trial)["b"], torch.zeros(5)) for trial in answer.trials())
    answer = ask(model("self.at += 1; return x * x[self.at - 1] + self.b", init=init))
    assert all(int(answer.state(trial)["at"]) == 0 for trial in answer.trials())
    assert any(not torch.equal(answer.state(trial)["b"], torch.zeros(5)) for trial in answer.trials())
