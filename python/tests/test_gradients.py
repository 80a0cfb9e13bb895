"""Problems that ask for gradients: what the oracle makes of them, and how a candidate's backward pass is traced."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest
import torch
from test_oracle import Answer, ask  # noqa: F401
from tilewright.cell import gradients
from tilewright.cell.oracle_problem import load, make_case
from tilewright.cell.oracle_reference import output_tensors
from tilewright.cell.oracle_values import OUTPUT
from trace_bench import HEAD, first, ops, rules
from trace_helper import signature_of, traced

BOTH = """
GRADIENTS = {wanted}
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(3, 5) + 0.5)
        self.frozen = nn.Parameter(torch.rand(3), requires_grad=False)
        self.unused = nn.Parameter(torch.rand(3))
    def forward(self, xs, index):
        hidden = xs[0] @ self.weight.t() + self.frozen
        return {{"all": hidden, "sum": hidden.square().sum(), "index": index + 1, "same": xs[1].detach()}}
def get_inputs():
    return [[torch.randn(4, 5), torch.randn(2)], torch.arange(3)]
def get_init_inputs():
    return []
"""


def test_a_call_gives_outputs_and_gradients_under_drawn_cotangents(ask: Any) -> None:  # noqa: F811
    answer: Answer = ask(BOTH.format(wanted="True"))
    assert answer.defect is None and answer.no_float64 is None
    signature = answer.cases[0]["signature"]
    assert signature["gradients"] == {"inputs": [["xs[0]", 0]], "parameters": ["weight"], "outputs": [0, 3]}
    trial = answer.trials()[0]
    state, first_call = answer.state(trial), trial["calls"][0]
    flats = [
        answer.blob(b, d)
        for b, d in zip(first_call["inputs"], ["float32", "float32", "int64", *["float32"] * 2], strict=True)
    ]
    x, weight = flats[0].reshape(4, 5).requires_grad_(), state["weight"].requires_grad_()
    hidden = x @ weight.t() + state["frozen"]
    cotangents = [flats[3].reshape(4, 3), flats[4].reshape(())]
    assert 0.5 <= cotangents[1].abs().item() <= 1.5
    want = torch.autograd.grad([hidden, hidden.square().sum()], [x, weight], cotangents)
    torch.testing.assert_close(answer.expected(first_call, 'output["all"]'), hidden.detach())
    torch.testing.assert_close(answer.expected(first_call, "grad xs[0]"), want[0])
    torch.testing.assert_close(answer.expected(first_call, "grad weight", wide=True).float(), want[1])
    again = trial["calls"][1]["inputs"]
    assert not torch.equal(answer.blob(again[3], "float32"), flats[3]), "each call has cotangents of its own"


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ('("weight", "nothing")', "GRADIENTS names nothing"),
        ('("frozen",)', "frozen, which is not trained"),
        ('("unused",)', "no output depends on unused"),
        ('("xs[1]",)', "no output depends on xs[1]"),
        ('("index",)', "GRADIENTS names index, which is no floating tensor"),
        ("3", "neither True nor names"),
        ("()", "neither True nor names"),
    ],
)
def test_what_cannot_be_asked_for_is_a_defect_with_words(ask: Any, wanted: str, words: str) -> None:  # noqa: F811
    answer: Answer = ask(BOTH.format(wanted=wanted))
    assert words in answer.defect, answer.defect


def test_a_reference_that_torch_cannot_differentiate_is_a_defect(ask: Any) -> None:  # noqa: F811
    answer: Answer = ask(BOTH.format(wanted="True").replace("hidden.square()", "hidden.exp().add_(1)"))
    assert "modified by an inplace operation" in answer.defect, answer.defect


@pytest.mark.parametrize("wanted", [True, ("weight",)])
def test_one_name_for_two_gradients_is_a_defect(wanted: Any) -> None:
    class Scaled(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(3))

        def forward(self, weight: torch.Tensor) -> torch.Tensor:
            return weight * self.weight

    with pytest.raises(gradients.NotDifferentiable, match="weight, which is an argument of forward and a parameter"):
        gradients.resolve(wanted, Scaled(), [torch.ones(3)])


def test_arguments_are_named_as_forward_names_them() -> None:
    class Sum(torch.nn.Module):
        def forward(self, first: torch.Tensor, *others: torch.Tensor, scale: float = 1.0, **more: Any) -> torch.Tensor:
            return (first + sum(others)) * scale

    spec, _ = gradients.resolve(True, Sum(), [torch.ones(2)] * 3)
    assert spec["inputs"] == [["first", 0], ["others[0]", 1], ["others[1]", 2]]


def test_outputs_that_are_called_like_gradients_have_names_of_their_own() -> None:
    one = torch.ones(1)
    plain = output_tensors({"grad a": [one, one], "b": one})
    assert list(plain) == ['output["grad a"][0]', 'output["grad a"][1]', 'output["b"]']
    both = output_tensors({OUTPUT: {"grad a": one}, "grad x": one, 'grad y["k"]': one})
    assert list(both) == ['output["grad a"]', "grad x", 'grad y["k"]']


def test_false_asks_for_nothing(ask: Any) -> None:  # noqa: F811
    answer: Answer = ask(BOTH.format(wanted="False"))
    assert answer.defect is None and answer.cases[0]["signature"]["gradients"] is None


def expanded(answer: Answer) -> list[dict[str, Any]]:
    return [trial for trial in answer.trials() if trial["regime"] == "expanded-cotangents"]


ONE = """
GRADIENTS = True
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(6))
    def forward(self, x):
        return {}
def get_inputs():
    return [torch.randn(8, 6)]
"""


@pytest.mark.parametrize(
    ("forward", "axes"),
    [
        ("torch.tanh(x) * self.scale", [[0, 1]]),
        ("torch.softmax(x * self.scale, -1)", [[0]]),
        ("torch.softmax(x, 0) * self.scale", [[1]]),
        ("[(x * self.scale).sum(-1), x.sum().square(), x.square()[:, None]]", [[0], [], [0, 2]]),
        ("(x * self.scale).square().sum()", None),
        ("torch.softmax((x * self.scale).sum(-1), 0)", None),
    ],
)
def test_expanded_cotangents_are_constant_where_that_says_something(ask: Any, forward: str, axes: Any) -> None:  # noqa: F811
    """The gradient of a softmax under that of a sum is nothing but rounding, so it is expanded along its rows alone."""
    answer: Answer = ask(ONE.format(forward), regimes=True)
    signature = answer.cases[0]["signature"]
    assert answer.defect is None and signature["gradients"].get("expanded") == axes
    trials = expanded(answer)
    assert len(trials) == (axes is not None)
    for trial in trials:
        (made,), state = trial["calls"], answer.state(trial)
        x, scale = answer.input(made).requires_grad_(), state["scale"].requires_grad_()
        output = eval(forward, {"torch": torch, "x": x, "self": type("", (), {"scale": scale})})
        outputs = output if isinstance(output, list) else [output]
        items = signature["args"][-1]["items"]
        vectors = [answer.blob(made["inputs"][ref["buffer"]], "float32", ref["shape"]) for ref in items]
        for vector, along in zip(vectors, axes, strict=True):
            for axis in along:
                assert torch.equal(vector, vector.narrow(axis, 0, 1).expand(vector.shape))
            assert vector.abs().max() >= 0.5
        want = torch.autograd.grad(outputs, [x, scale], vectors)
        torch.testing.assert_close(answer.expected(made, "grad x"), want[0])
        torch.testing.assert_close(answer.expected(made, "grad scale", wide=True).float(), want[1])


def test_cotangents_are_expanded_alike_under_every_rule_for_weights(ask: Any) -> None:  # noqa: F811
    """A candidate is traced once, for those of one rule, and may be judged on those of another."""
    found = []
    for rule in ("random", "init"):
        answer: Answer = ask(ONE.format("torch.softmax(x * self.scale, -1)"), regimes=True, state_rule=rule)
        found.append(answer.cases[0]["signature"]["gradients"])
        assert len(expanded(answer)) == 1
    assert found[0] == found[1]


# Traces.

FUNCTION = """
class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return run(x)

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        {backward}

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(100))

    def forward(self, x):
        {forward}
"""


def plan(backward: str = "return run(grad), run(grad)", forward: str = "return Scale.apply(x, self.weight)") -> Any:
    model = torch.nn.Module()
    model.weight = torch.nn.Parameter(torch.ones(100))
    spec = {"inputs": [["x", 0]], "parameters": ["weight"], "outputs": [0]}
    signature = signature_of([torch.empty(100), [torch.empty(100)]], model=model, gradients=spec)
    body = FUNCTION.format(
        backward=textwrap.indent(backward, " " * 8).strip(), forward=textwrap.indent(forward, " " * 8).strip()
    )
    return traced(HEAD + body, signature)


def test_launches_of_a_backward_become_steps_like_others() -> None:
    found = first(plan())
    assert found["findings"] == [] and ops(found) == ["launch"] * 3
    (output, _), (x, _), (weight, _) = found["output"]["items"]
    assert (output, x, weight) == ("output of forward", "grad x", "grad weight")
    assert found["buffers"][found["steps"][1]["args"][0]["buffer"]]["source"] == {"kind": "input", "index": 1}


@pytest.mark.parametrize(
    ("change", "kept"),
    [
        ({"forward": "return Scale.apply(x.view(10, 10).t().reshape(100), self.weight)"}, ["copy"] * 2),
        ({"forward": "return Scale.apply(x[2:], self.weight[2:]).new_zeros(100).copy_(x)"}, None),
        ({"backward": "return run(grad), run(grad).double()"}, ["copy"] * 2),
    ],
)
def test_views_copies_and_casts_of_autograd_are_steps(change: dict[str, str], kept: list[str] | None) -> None:
    found = first(plan(**change))
    assert not any(f["rule"] == "torch-compute" for f in found["findings"]), found["findings"]
    if kept is not None:
        assert [op for op in ops(found) if op == "copy"] == kept, ops(found)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"forward": "return Scale.apply(x, self.weight) * self.weight"}, "in MulBackward0, the backward pass"),
        ({"forward": "return Scale.apply(Scale.apply(x, self.weight), self.weight)"}, "is used twice"),
        ({"backward": "return run(grad), run(grad).expand(3, 100)"}, "the shape of its arguments"),
        ({"backward": "return grad * 2, run(grad)"}, "`return grad * 2, run(grad)`"),
    ],
)
def test_arithmetic_of_autograd_is_torch_s_own(change: dict[str, str], words: str) -> None:
    found = first(plan(**change))
    assert ("torch-compute", "proof") in rules(found)
    assert any(words in finding["message"] for finding in found["findings"]), found["findings"]


@pytest.mark.parametrize(
    ("forward", "variants"),
    [
        ("return Scale.apply(x, self.weight)", 0),
        ("return Scale.apply(x, self.weight) if torch.is_grad_enabled() else run(x)", 0),
        ("return Scale.apply(x, self.weight) if torch.is_grad_enabled() else torch.empty_like(x)", 1),
        ("return Scale.apply(x, self.weight) if x.requires_grad else run(self.weight)", 1),
        ("assert torch.is_grad_enabled()\nreturn Scale.apply(x, self.weight)", 0),
    ],
)
def test_forward_alone_is_a_plan_of_its_own_where_it_does_something_else(forward: str, variants: int) -> None:
    _, *others, layout = plan(forward=forward)["plans"]
    assert "not contiguous" in layout["choices"][0]["config"]
    assert len(others) == variants
    for other in others:
        assert [c["function"] for c in other["choices"]] == ["(circumstance)"]
        assert [name for name, _ in other["output"]["items"]] == ["output of forward", "grad x", "grad weight"]


def laid_out(backward: str, shape: tuple[int, ...] = (100,), axes: Any = None) -> tuple[Any, list[Any]]:
    """The answer for cotangents of this shape, and its plans for other layouts of them."""
    spec = {"inputs": [["x", 0]], "parameters": [], "outputs": [0], "expanded": axes}
    body = FUNCTION.format(backward=backward, forward="return Scale.apply(x, None)")
    answer = traced(HEAD + body, signature_of([torch.empty(shape), [torch.empty(shape)]], gradients=spec))
    return answer, [found for found in answer["plans"] if found["choices"]]


@pytest.mark.parametrize(
    ("shape", "axes", "strides", "nbytes"),
    [
        ((4, 6), [[0, 1]], [[1, 4], [12, 1], [0, 0]], [96, 168, 4]),
        ((4, 6), [[0]], [[1, 4], [12, 1], [0, 1]], [96, 168, 24]),
        ((4, 6), None, [[1, 4], [12, 1]], [96, 168]),
        ((2, 3, 4), [[2]], [[1, 2, 6], [24, 8, 1], [3, 1, 0]], [96, 176, 24]),
        ((100,), [[0]], [[2], [0]], [796, 4]),
        ((1, 6), None, [[12, 2]], [44]),
        ((5, 1), None, [[2, 2], [2, 1]], [36, 36]),
        ((1, 1), None, [], []),
        ((), None, [], []),
    ],
)
def test_a_backward_pass_is_traced_under_cotangents_of_other_layouts(
    shape: tuple[int, ...], axes: Any, strides: list[list[int]], nbytes: list[int]
) -> None:
    """Each plan puts a trial's cotangent into the layout, and the file works on that."""
    answer, plans = laid_out("return run(grad.contiguous()), None", shape, axes)
    assert first(answer)["findings"] == [] and "copy" not in ops(first(answer))
    regimes = [*["seed"] * (len(strides) - bool(axes)), *["expanded-cotangents"] * bool(axes)]
    assert [found["regime"] for found in plans] == regimes
    for found, want, size in zip(plans, strides, nbytes, strict=True):
        assert found["findings"] == [] and ops(found) == ["copy", "launch", "copy", "launch"]
        laid, own = found["steps"][0], found["steps"][2]
        assert found["buffers"][laid["src"]["buffer"]]["source"] == {"kind": "input", "index": 1}
        assert laid["src"]["shape"] == laid["dst"]["shape"]
        assert (own["src"]["shape"], own["src"]["strides"]) == (list(shape), want)
        assert own["src"]["buffer"] == laid["dst"]["buffer"]
        reach = 4 * (1 + sum((n - 1) * stride for n, stride in zip(shape, want, strict=True)))
        assert reach == size <= found["buffers"][own["src"]["buffer"]]["nbytes"]


@pytest.mark.parametrize(
    ("backward", "rule", "words"),
    [
        ("assert grad.is_contiguous()", "cotangent-layout", "AssertionError"),
        ("grad = grad.view(24).view(4, 6)", "cotangent-layout", "view"),
        ("if 0 in grad.stride(): return grad * 2, None", "torch-compute", "strides of 0"),
        ("if not grad.is_contiguous(): return torch.relu(grad), None", "torch-compute", "not contiguous"),
    ],
)
def test_what_goes_wrong_under_another_layout_alone_is_told(backward: str, rule: str, words: str) -> None:
    answer, _ = laid_out(f"{backward}\n        return run(grad), None", (4, 6), [[0, 1]])
    found = [finding for found in answer["plans"] for finding in found["findings"] if finding["rule"] == rule]
    assert found and found[0]["tier"] == "proof" and words in found[0]["message"], answer
    assert "with a cotangent that is" in found[0]["message"] and found[0]["line"] > 0


@pytest.mark.parametrize(
    ("forward", "words"),
    [
        ("return run(x)", "no gradient flows from the outputs to x"),
        ("return Scale.apply(x, self.weight.detach())", "no gradient flows from the outputs to weight"),
        ("w = self.weight\nself._parameters.clear()\nself.w = w\nreturn Scale.apply(x, w)", "no parameter weight"),
    ],
)
def test_a_gradient_that_is_missing_is_explained(forward: str, words: str) -> None:
    found = first(plan(forward=forward))
    assert any(words in f["message"] for f in found["findings"] if f["rule"] == "no-gradient"), found["findings"]
    assert any(value == {"kind": "none"} for _, value in found["output"]["items"])


@pytest.mark.parametrize(
    ("backward", "words"),
    [
        ("return run(grad)", "returned 1 gradients"),
        ("return run(grad), run(grad), run(grad)", "returned 3 gradients"),
        ("return run(grad), run(grad)[:3]", "invalid gradient at index 1"),
        ("return run(grad), 3.0", "returns a float as gradient"),
    ],
)
def test_what_torch_s_engine_refuses_is_the_file_s_exception(backward: str, words: str) -> None:
    answer = plan(backward)
    assert answer["error"]["kind"] == "exception" and words in answer["error"]["message"], answer


@pytest.mark.parametrize("order", ['{"a": one, "b": two}', '{"b": two, "a": one}'])
def test_cotangents_belong_to_names_not_to_the_order_of_a_dict(order: str) -> None:
    spec = {"inputs": [["x", 0]], "parameters": [], "outputs": [0, 1]}
    signature = signature_of([torch.empty(100), [torch.empty(100), torch.empty(100)]], gradients=spec)
    forward = f"one, two = Scale.apply(x, None), Scale.apply(x[:], None).detach()\nreturn {order}"
    body = FUNCTION.format(backward="return run(grad), None", forward=textwrap.indent(forward, " " * 8).strip())
    found = first(traced(HEAD + body.replace("torch.ones(100)", "torch.ones(1)"), signature))
    launched = [step["args"][0]["buffer"] for step in found["steps"] if step["op"] == "launch"]
    assert [found["buffers"][b]["source"].get("index") for b in launched] == [0, 0, 1], found


def test_arguments_that_are_no_tensors_have_no_gradients() -> None:
    model = torch.nn.Module()
    model.weight = torch.nn.Parameter(torch.ones(100))
    body = FUNCTION.format(
        backward="return None, run(grad), None, None, run(weight), None",
        forward="return Scale.apply(self, x, 3, torch.zeros(100, device=x.device), self.weight, None)",
    ).replace("forward(ctx, x, weight)", "forward(ctx, module, x, number, other, weight, nothing)")
    spec = {"inputs": [["x", 0]], "parameters": ["weight"], "outputs": [0]}
    signature = signature_of([torch.empty(100), [torch.empty(100)]], model=model, gradients=spec)
    found = first(traced(HEAD + body, signature))
    sources = [
        found["buffers"][s["args"][0]["buffer"]]["source"]["kind"] for s in found["steps"] if s["op"] == "launch"
    ]
    assert sources == ["input", "input", "state"], found
    items = dict(found["output"]["items"])
    assert items["grad x"]["buffer"] != items["grad weight"]["buffer"]


def test_a_weight_of_one_number_is_looked_at_without_leaving_a_tensor_behind() -> None:
    model = torch.nn.Module()
    model.scale = torch.nn.Parameter(torch.tensor(0.7))
    body = FUNCTION.format(
        backward="return run(grad), run(weight)",
        forward="return Scale.apply(x, self.scale)",
    ).replace("self.weight = nn.Parameter(torch.ones(100))", "self.scale = nn.Parameter(torch.tensor(0.7))")
    assert "torch.tensor(0.7)" in body
    spec = {"inputs": [["x", 0]], "parameters": ["scale"], "outputs": [0]}
    signature = signature_of([torch.empty(100), [torch.empty(100)]], model=model, gradients=spec)
    found = first(traced(HEAD + body, signature))
    assert rules(found) == [], found["findings"]


def test_an_output_that_nothing_depends_on_has_a_gradient_of_zeros_unless_the_file_wants_none() -> None:
    two = "return run(x), run(x)"
    for setting, zeros in (("", 1), ("ctx.set_materialize_grads(False)\n        ", 0)):
        body = FUNCTION.format(
            backward="assert (other is None) == bool(NONE)\n        return run(grad), run(grad)",
            forward="return Scale.apply(x, self.weight)[0]",
        )
        body = body.replace("ctx.save_for", f"{setting}ctx.save_for").replace("return run(x)\n", f"{two}\n")
        body = body.replace("backward(ctx, grad)", "backward(ctx, grad, other)").replace("NONE", str(1 - zeros))
        model = torch.nn.Module()
        model.weight = torch.nn.Parameter(torch.ones(100))
        spec = {"inputs": [["x", 0]], "parameters": ["weight"], "outputs": [0]}
        signature = signature_of([torch.empty(100), [torch.empty(100)]], model=model, gradients=spec)
        found = first(traced(HEAD + body, signature))
        assert ops(found).count("fill") == zeros, found


@pytest.mark.parametrize(
    "hook",
    [
        "out.register_hook(torch.zeros_like)",
        "out.grad_fn.register_hook(lambda *gradients: None)",
        "out.grad_fn.register_prehook(lambda gradients: None)",
        "out.grad_fn.next_functions[0][0].register_prehook(lambda gradients: None)",
        "out.view(100).grad_fn.register_prehook(lambda gradients: None)",
        "out._backward_hooks = {}",
        "torch.autograd.graph.register_multi_grad_hook([x], lambda gradients: None)",
        "torch.autograd.Variable._execution_engine.queue_callback(print)",
        "self.weight.register_hook(torch.zeros_like)",
        "self.weight.register_post_accumulate_grad_hook(print)",
        "layer.register_full_backward_hook(print)",
        "layer.register_full_backward_pre_hook(print)",
    ],
)
def test_hooks_end_the_trace(hook: str) -> None:
    """Torch's engine would call them; a plan without what they do is not the file."""
    body = "layer = nn.Identity()\nout = Scale.apply(x, self.weight)\nif out.requires_grad:\n    {}\nreturn layer(out)"
    found = first(plan(forward=body.format(hook)))
    assert ("backward-hook", "untraceable") in rules(found), found["findings"]


def graphs() -> dict[str, Any]:
    """What the tracer's walk gives for graphs of torch's own operations, beside what torch's engine gives."""
    from types import SimpleNamespace

    from tilewright.cell.trace_gradients import Walk, _edge, _key

    worst: dict[str, float] = {}
    for name, function in {
        "chain": lambda x, w: ((x @ w).tanh() * x.sum(0)).cumsum(1),
        "diamond": lambda x, w: (x * w + x.exp()).softmax(-1) * x + (x * 2).view(-1).view(x.shape),
        "leaf itself": lambda x, w: x,
        "parts": lambda x, w: torch.cat([p * w[0, 0] for p in x.split(2)]) + torch.stack(list(w.unbind(0))),
    }.items():
        x, w = (torch.randn(4, 4, dtype=torch.float64, requires_grad=True) for _ in range(2))
        y = function(x, w)
        g = torch.randn_like(y)
        want = torch.autograd.grad(y, [x, w], g, allow_unused=True, retain_graph=True)
        session = SimpleNamespace(deriving="", sparse_contexts=set())
        with torch.no_grad():
            edges = [_edge(x), _edge(w)]
            got = Walk(session, edges).run([(_edge(y), g)])
        for edge, value in zip(edges, want, strict=True):
            mine = got.get(_key(edge))
            assert (mine is None) == (value is None), name
            worst[name] = max(worst.get(name, 0.0), 0.0 if value is None else (mine - value).abs().max().item())
    return worst


def test_the_walk_through_a_graph_gives_what_torch_s_engine_gives() -> None:
    torch.manual_seed(0)
    assert all(error < 1e-12 for error in graphs().values()), graphs()


def test_a_module_as_a_user_has_it_gives_the_same(tmp_path: Path) -> None:
    """`direct` and `confirm` run a file on a device with torch's own engine."""
    path = tmp_path / "problem.py"
    text = "import torch, torch.nn as nn\n" + BOTH.format(wanted='("weight", "xs")')
    path.write_text(text.replace('"same": xs[1].detach()', '"same": xs[1] * 2'))
    case = make_case(str(path), load(str(path), path.read_text()), "default")
    case.find_gradients()
    assert gradients.names(case.gradients) == ["grad xs[0]", "grad xs[1]", "grad weight"]
    model = case.build()
    result = model(*case.inputs())
    assert list(result) == ["output of forward", "grad xs[0]", "grad xs[1]", "grad weight"]
    assert not any(t.requires_grad for t in gradients.tensors_of(result))
    assert list(model.state_dict()) == ["weight", "frozen", "unused"]
