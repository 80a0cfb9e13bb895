"""Ways to launch a kernel, and autotuned kernels, under the tracer."""

from __future__ import annotations

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
    assert taken(these=[0, 7, 39, 40, 10**30]) == [0, 1, 8, 40]
