"""Ways to launch a kernel, and autotuned kernels, under the tracer."""

from __future__ import annotations

from typing import Any

import pytest
from trace_bench import forward, ops, plan_of, trace


@pytest.mark.parametrize(
    "body",
    [
        "f = double[(2,)]\nf(x, o, 100, B=64)",
        "table = {'k': functools.partial(double[(2,)], B=64)}\ntable['k'](x, o, 100)",
        "double.run(x, o, 100, grid=(2,), warmup=False, B=64)",
        "getattr(double, '__getitem__')((2,))(x, o, 100, 64)",
        "double[(2,)](x=x, o=o, n=100, B=64)",
        "double.warmup(x, o, 100, B=64, grid=(2,))[(2,)](x, o, 100, 64)",
        "with torch.cuda.device(x.device): double[(2,)](x, o, 100, B=64)",
        "with torch.cuda.device_of(x): double[(2,)](x, o, 100, B=64)",
        "with torch.inference_mode(): double[(2,)](x.contiguous().view(10, 10).reshape(-1), o, 100, B=64)",
        "torch.cuda.synchronize(); assert torch.cuda.is_available(); double[(2,)](x, o, 100, B=64)",
        "torch.library.wrap_triton(double)[(2,)](x, o, 100, B=64)",
    ],
)
def test_ways_to_launch(body: str):
    plan = forward("o = torch.empty_like(x)\n" + body + "\nreturn o")
    assert plan["findings"] == []
    assert ops(plan) == ["launch"]
    assert plan["steps"][0]["grid"] == [2, 1, 1]


def test_autograd_function_custom_op_and_triton_op():
    plan = plan_of(
        """
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return run(x)

            @staticmethod
            def backward(ctx, g):
                return g

        @torch.library.custom_op("my::twice", mutates_args=())
        def twice(x: torch.Tensor) -> torch.Tensor:
            return run(x)

        @twice.register_fake
        def _(x):
            raise RuntimeError("the fake must not run")

        @torch.library.triton_op("my::thrice", mutates_args=())
        def thrice(x: torch.Tensor) -> torch.Tensor:
            o = torch.empty_like(x)
            torch.library.wrap_triton(double)[(2,)](x, o, 100, B=64)
            return o

        lib = torch.library.Library("my2", "DEF")
        lib.define("four(Tensor x) -> Tensor")
        lib.impl("four", lambda x: run(x), "CUDA")

        class ModelNew(nn.Module):
            def forward(self, x):
                return torch.ops.my2.four(thrice(twice(F.apply(x))))
        """
    )
    assert plan["findings"] == []
    assert ops(plan) == ["launch"] * 4


def test_properties_answer_as_the_target():
    body = """
    p = torch.cuda.get_device_properties(x.device)
    o = torch.empty_like(x)
    double[(p.multi_processor_count,)](x, o, torch.cuda.get_device_capability()[0] * 10 + 5, B=64)
    return o
    """
    for arch, sms, major in (("80", 108, 8), ("90", 132, 9), ("100", 148, 10)):
        plan = forward(body, target={"backend": "cuda", "arch": arch, "warp_size": 32})
        assert plan["steps"][0]["grid"][0] == sms
        assert plan["steps"][0]["args"][2]["value"] == major * 10 + 5


# autotune -----------------------------------------------------------------------------------------------------------

TUNED = """
def hook(args):
    args["o"].zero_()

@triton.autotune(
    configs=[
        triton.Config({"B": 32}, num_warps=1),
        triton.Config({"B": 64}, num_warps=2, pre_hook=hook),
        triton.Config({"B": 4096}, num_warps=8),
    ],
    key=["n"],
    prune_configs_by={"early_config_prune": lambda configs, args, **kw: [c for c in configs if c.kwargs["B"] <= 1024]},
)
@triton.heuristics({"EVEN": lambda args: args["n"] % args["B"] == 0})
@triton.jit
def tuned(x, o, n, B: tl.constexpr, EVEN: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)

class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        tuned[lambda meta: (triton.cdiv(100, meta["B"]),)](x, o, 100)
        return o.view(-1), tuned.best_config.kwargs["B"]
"""


def test_each_configuration_is_a_plan():
    *plans, measured = trace(TUNED)["plans"]
    assert measured["choices"][-1]["function"] == "(circumstance)" and ops(measured) == ["launch", "launch"]
    assert [p["choices"][0]["index"] for p in plans] == [0, 1]
    assert [p["choices"][0]["of"] for p in plans] == [2, 2]
    assert [p["steps"][-1]["grid"][0] for p in plans] == [4, 2]
    assert [ops(p) for p in plans] == [["launch"], ["fill", "launch"]]
    assert [p["output"]["items"][1]["value"] for p in plans] == [32, 64]
    assert plans[1]["kernels"][0]["options"]["num_warps"] == 2
    assert plans[0]["kernels"][0]["constexprs"]["4"] == {"kind": "number", "value": False}
    assert all(p["findings"] == [] for p in plans)


def test_too_many_configurations_are_chosen_from_outside():
    many = TUNED.replace("configs=[", "configs=[triton.Config({'B': 32}, num_stages=s) for s in range(1, 40)] + [", 1)

    def taken(**further):
        *plans, measured = trace(many, further=further)["plans"]
        assert measured["choices"][-1]["function"] == "(circumstance)"
        assert {plan["choices"][0]["of"] for plan in plans} == {41}
        return [plan["choices"][0]["index"] for plan in plans]

    assert taken(up_to=40) == list(range(41))
    assert taken(up_to=39) == taken(these=[]) == [0]
    assert taken(these=[[[0, 1]], [[0, 8]], [[0, 40]], [[0, 41]], [[1, 1]], [[10**30, 1]], []]) == [0, 1, 8, 40]


PAIR = """
@triton.autotune(configs=[triton.Config({"B": 32}), triton.Config({"B": 64})], key=["n"])
@triton.jit
def double(x, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)

@triton.autotune(configs=[triton.Config({"B": 32}), triton.Config({"B": 64}), triton.Config({"B": 128})], key=["n"])
@triton.jit
def again(x, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)

def launch(kernel, x, n):
    o = torch.empty_like(x)
    kernel[lambda meta: (triton.cdiv(n, meta["B"]),)](x, o, n)
    return o

class ModelNew(nn.Module):
    def forward(self, x):
        BODY
"""


def taken_by(body: str, **further: Any) -> list[list[int]]:
    plans = [plan["choices"] for plan in trace(PAIR.replace("BODY", body), further=further or {"up_to": 63})["plans"]]
    usual = [choices for choices in plans if choices[-1]["function"] != "(circumstance)"]
    return [[choice["index"] for choice in choices] for choices in usual]


def test_mixtures_are_asked_for_from_outside():
    body = "return launch(again, launch(double, x, 100), 100)"
    assert taken_by(body) == [[0, 0], [1, 0], [0, 1], [0, 2]]
    assert taken_by(body, these=[[[0, 1], [1, 2]], [[1, 1]], [[0, 1], [1, 3]]]) == [[0, 0], [1, 2], [0, 1]]


def test_an_autotuner_chooses_for_each_key():
    body = "launch(double, x, 1); return launch(double, x, 100)"
    assert taken_by(body) == [[0, 0], [1, 0], [0, 1]]


def test_an_autotuner_that_launches_only_under_a_configuration_of_another():
    body = "y = launch(double, x, 100); return launch(again, x, 100) if double.best_config.kwargs['B'] == 64 else y"
    assert taken_by(body) == [[0], [1, 0], [1, 1], [1, 2]]


def test_an_autotuner_made_in_every_call():
    body = "return launch(triton.autotune(configs=double.configs, key=['n'])(double.fn), x, 100)"
    assert taken_by(body) == [[0], [1]]


PRUNED = """
def prune(configs, args, **kwargs):
    RULE

@triton.autotune(
    configs=[triton.Config({"B": 32}), triton.Config({"B": 64}), triton.Config({"B": 128})],
    key=["n"], prune_configs_by={"early_config_prune": prune})
@triton.jit
def tuned(x, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)

class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        tuned[(100,)](x, o, 100)
        return o
"""


@pytest.mark.parametrize(
    "rule",
    [
        "return configs if getattr(tuned, 'best_config', None) is None else configs[:2]",
        "last = getattr(tuned, 'best_config', None)\n"
        "    return [configs[0], configs[2], configs[1]] if last and last.kwargs['B'] == 64 else configs",
        "return configs[: 2 + (len(tuned.cache) == 0)]",
        "configs[2].kwargs['B'] = 32 if tuned.cache else 128\n    return configs",
    ],
)
def test_pruning_that_looks_at_what_was_chosen_before_hides_nothing(rule):
    plans = trace(PRUNED.replace("RULE", rule))["plans"]
    usual = [plan for plan in plans if plan["choices"][-1]["function"] != "(circumstance)"]
    assert [plan["kernels"][0]["constexprs"]["3"]["value"] for plan in usual] == [32, 64, 128]


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("tuned.cache[(100, 'torch.float32', 'torch.float32')] = tuned.configs[1]", "tampering"),
        ("tuned.cache.update(dict.fromkeys(tuned.cache, tuned.configs[2]))", "tampering"),
        ("tuned.best_config.kwargs['B'] = 64", "hidden-state"),
        ("tuned.configs.reverse(); tuned.cache.clear()", "hidden-state"),
    ],
)
def test_what_the_autotuner_knows_is_its_own(line, rule):
    source = PRUNED.replace("RULE", "return configs").replace("        return o", f"        {line}\n        return o")
    found = [finding for plan in trace(source)["plans"] for finding in plan["findings"]]
    assert (rule, "proof") in {(finding["rule"], finding["tier"]) for finding in found}
