"""The tracer on candidates written for one feature each: the plan, or the finding and its line."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import textwrap
from typing import Any

import pytest
import torch
from tilewright.cell import trace as job
from tilewright.cell import trace_record
from trace_helper import in_child, request_of, signature_of, traced

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


# plans --------------------------------------------------------------------------------------------------------------


def test_a_launch_becomes_a_step_with_triton_s_own_specialisation():
    plan = forward("return run(x)")
    assert plan["findings"] == []
    assert plan["buffers"] == [
        {"nbytes": 400, "source": {"kind": "input", "index": 0}},
        {"nbytes": 400, "source": {"kind": "scratch"}},
    ]
    (kernel,) = plan["kernels"]
    assert [p["ty"] for p in kernel["params"]] == ["*fp32", "*fp32", "i32", "constexpr"]
    assert kernel["constexprs"] == {"3": {"kind": "number", "value": 64}}
    assert kernel["attrs"]["0"] == [["tt.divisibility", 16]]
    assert kernel["attrs"]["2"] == []  # 100 is not divisible by 16
    (step,) = plan["steps"]
    assert step["grid"] == [2, 1, 1]
    assert step["args"] == [
        {"kind": "pointer", "buffer": 0, "offset": 0},
        {"kind": "pointer", "buffer": 1, "offset": 0},
        {"kind": "scalar", "value": 100},
    ]
    assert plan["output"]["buffer"] == 1


def test_alignment_comes_from_the_storage_offset():
    plan = forward("return run(x[1:]), run(x[4:])")
    first, second = plan["kernels"]
    assert first["attrs"].get("0", []) == []
    assert second["attrs"]["0"] == [["tt.divisibility", 16]]
    assert plan["steps"][0]["args"][0] == {"kind": "pointer", "buffer": 0, "offset": 4}


def test_none_and_one_become_constexprs():
    plan = plan_of(
        """
        @triton.jit
        def opt(x, y, n, flag, s):
            tl.store(x, s)

        class ModelNew(nn.Module):
            def forward(self, x):
                opt[(1,)](x, None, 1, True, 2.5)
                return x
        """
    )
    kernel = plan["kernels"][0]
    assert [p["ty"] for p in kernel["params"]] == ["*fp32", "constexpr", "constexpr", "u1", "fp32"]
    assert kernel["constexprs"] == {"1": {"kind": "none"}, "2": {"kind": "number", "value": 1}}
    assert plan["steps"][0]["args"][1:] == [{"kind": "scalar", "value": True}, {"kind": "scalar", "value": 2.5}]


def test_constexprs_of_all_kinds_and_tuples():
    plan = plan_of(
        """
        @triton.jit
        def helper(v):
            return v + 1

        @triton.jit
        def k(ptrs, sizes, DT: tl.constexpr, NAME: tl.constexpr, F: tl.constexpr, T: tl.constexpr):
            tl.store(ptrs[0], F(sizes[0]).to(DT))

        class ModelNew(nn.Module):
            def forward(self, x):
                o = torch.empty_like(x)
                k[(1,)]((o, x), (3, 1, 2.0), tl.float32, "abc", helper, (1, (2, None)))
                return o
        """
    )
    kernel = plan["kernels"][0]
    assert [(p["name"], p["ty"]) for p in kernel["params"]] == [
        ("ptrs.0", "*fp32"),
        ("ptrs.1", "*fp32"),
        ("sizes.0", "i32"),
        ("sizes.1", "constexpr"),
        ("sizes.2", "fp32"),
        ("DT", "constexpr"),
        ("NAME", "constexpr"),
        ("F", "constexpr"),
        ("T", "constexpr"),
    ]
    assert kernel["constexprs"]["1.1"] == {"kind": "number", "value": 1}
    assert kernel["constexprs"]["2"] == {"kind": "dtype", "value": "fp32"}
    assert kernel["constexprs"]["3"] == {"kind": "str", "value": "abc"}
    assert kernel["constexprs"]["4"] == {"kind": "function", "value": "helper"}
    assert kernel["constexprs"]["5"]["items"][1]["items"][1] == {"kind": "none"}
    assert len(plan["steps"][0]["args"]) == 4


def test_host_tensor_descriptor():
    plan = plan_of(
        """
        from triton.tools.tensor_descriptor import TensorDescriptor

        @triton.jit
        def k(d, o):
            tl.store(o, tl.sum(d.load([0, 0])))

        class ModelNew(nn.Module):
            def forward(self, x):
                o = torch.empty(1, device=x.device)
                k[(1,)](TensorDescriptor.from_tensor(x, [16, 32]), o)
                return o
        """,
        [torch.empty(64, 32)],
    )
    assert plan["kernels"][0]["params"][0]["ty"].startswith("tensordesc<fp32[16, 32]")
    argument = plan["steps"][0]["args"][0]
    assert argument["kind"] == "descriptor"
    assert argument["block_shape"] == [16, 32] and argument["padding"] == "zero"
    assert argument["tensor"]["strides"] == [32, 1]


def test_options_and_forbidden_options():
    body = """
    o = torch.empty_like(x)
    double[(2,)](x, o, 100, B=64, num_warps=2, num_stages=1, maxnreg=64, enable_fp_fusion=False, launch_pdl=True)
    return o
    """
    options = forward(body)["kernels"][0]["options"]
    assert options == {
        "num_warps": 2,
        "num_stages": 1,
        "num_ctas": 1,
        "maxnreg": 64,
        "enable_fp_fusion": False,
        "launch_cooperative_grid": False,
        "launch_pdl": True,
    }
    for option in ('extern_libs={"x": "/y"}', 'ptx_options="-v"', 'ir_override="x.ptx"'):
        plan = forward(f"o = torch.empty_like(x)\ndouble[(2,)](x, o, 100, B=64, {option})\nreturn o")
        assert ("forbidden-launch-option", "proof") in rules(plan), option
    response = trace(module("double[(1,)](x, x, 1, B=64, nonsense=3)\nreturn x"))
    assert response["error"]["type"] == "KeyError"


def test_grids():
    plan = forward(
        """
        o = torch.empty_like(x)
        double[lambda meta: (triton.cdiv(100, meta["B"]), 2, 3)](x, o, 100, B=32)
        double[[4]](x, o, 100, B=32)
        double[(0,)](x, o, 100, B=32)
        return o
        """
    )
    assert [s["grid"] for s in plan["steps"]] == [[4, 2, 3], [4, 1, 1]]


def test_memory_ops_become_steps():
    plan = forward(
        """
        a = torch.zeros_like(x)
        b = torch.full((10, 10), 3.5, device=x.device, dtype=torch.float16)
        c = x.view(10, 10).t().contiguous()
        d = c.to(torch.bfloat16)
        e = torch.arange(2, 12, 2, device=x.device)
        f = torch.tensor([1, 2, 3], device=x.device)
        g = torch.cat([x, a])
        a.copy_(x); a[:50].fill_(7); a.zero_()
        h = x.new_ones(3); i = x[:10].expand(4, 10).clone(); j = x.repeat(2, 3)
        k = torch.nn.functional.pad(x.view(10, 10), (1, 2))
        l = torch.stack([x, a]); m = torch.eye(3, device=x.device)
        return a, b, c, d, e, f, g, h, i, j, k, l, m
        """
    )
    assert plan["findings"] == []
    a_to_e, f_g = ["fill", "fill", "copy", "copy", "iota"], ["literal", "copy", "copy", "copy"]
    writes_to_a, h_to_j, k_to_m = ["copy", "fill", "fill"], ["fill", "copy", "copy"], ["fill", "copy", "copy", "copy"]
    assert ops(plan) == [*a_to_e, *f_g, *writes_to_a, *h_to_j, *k_to_m, "fill", "fill"]
    repeat = plan["steps"][14]
    assert repeat["src"]["shape"] == [2, 1, 3, 100] and repeat["src"]["strides"][2] == 0
    transposed = plan["steps"][2]
    assert transposed["src"]["strides"] == [1, 10] and transposed["dst"]["strides"] == [10, 1]
    assert plan["output"]["kind"] == "tuple" and len(plan["output"]["items"]) == 13


def test_views_cost_nothing_and_outputs_keep_their_structure():
    plan = forward(
        """
        o = run(x)
        return {"a": o.view(10, 10).transpose(0, 1)[1:, ::2], "b": [o.unsqueeze(0), None, 3, "s"], "c": x}
        """
    )
    assert ops(plan) == ["launch"]
    a = plan["output"]["items"][0][1]
    assert (a["shape"], a["strides"], a["offset"]) == ([9, 5], [1, 20], 4)
    assert [i["kind"] for i in plan["output"]["items"][1][1]["items"]] == ["tensor", "none", "number", "str"]
    assert plan["output"]["items"][2][1]["buffer"] == 0


def test_random_numbers_and_seeds():
    plan = forward(
        """
        noise = torch.rand(100, device=x.device)
        seed = torch.randint(0, 2**31 - 1, (1,), device=x.device).item()
        o = torch.empty_like(x)
        double[(2,)](noise, o, seed, B=64)
        return o
        """
    )
    assert plan["findings"] == []
    assert [s["op"] for s in plan["steps"]] == ["random", "random", "launch"]
    assert plan["steps"][0]["distribution"] == {"kind": "uniform", "low": 0.0, "high": 1.0}
    assert plan["steps"][2]["args"][2] == {"kind": "seed", "index": 0, "low": 0, "high": 2**31 - 1}


def test_a_seed_that_was_changed_before_the_launch_is_noticed():
    plan = forward(
        """
        seed = int(torch.randint(0, 2**31 - 1, (1,)).item()) // 2
        o = torch.empty_like(x)
        double[(2,)](x, o, seed, B=64)
        return o
        """
    )
    assert ("hidden-state", "proof") in rules(plan)


def test_literals_on_the_host_are_folded():
    plan = forward(
        """
        n = int((torch.tensor(16) * 2).sum().item())
        o = torch.empty_like(x)
        double[(n,)](x, o, 100, B=64)
        return o
        """
    )
    assert rules(plan) == []
    assert plan["steps"][-1]["grid"] == [32, 1, 1]


def test_a_large_literal_is_refused():
    plan = forward("t = torch.tensor(list(range(5000)), device=x.device)\nreturn run(x)")
    assert ("large-literal", "proof") in rules(plan)


def test_aliased_strided_and_offset_inputs():
    base = torch.empty(6, 8, dtype=torch.float16)
    plan = forward("return run(x), run(x1), run(x2)", [base[1:], base.t(), torch.empty(7, 3).t()])
    pointers = [s["args"][0] for s in plan["steps"] if s["op"] == "launch"]
    assert [(p["buffer"], p["offset"]) for p in pointers] == [(0, 16), (0, 0), (3, 0)]
    assert plan["buffers"][0] == {"nbytes": 96, "source": {"kind": "input", "index": 0}}


# weights ------------------------------------------------------------------------------------------------------------


def test_weights_by_name_constants_by_path():
    model = nn_with_linear()
    response = trace(
        """
        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.lin = nn.Linear(4, 8)
                self.h16 = nn.Parameter(torch.zeros(8, dtype=torch.float16))
                self.table = [torch.ones(3, device="cuda"), torch.zeros(2)]
                self.other = nn.Parameter(torch.zeros(5))

        class ModelNew(nn.Module):
            def __init__(self):
                super().__init__()
                self.block = Block().cuda()
                self.wt = self.block.lin.weight.t().contiguous().cuda()
                self.view = self.block.lin.weight.t()

            def forward(self, x):
                b = self.block
                return [run(t) for t in (b.lin.weight, self.view, b.h16, b.table[0], b.other, self.wt, GLOBAL)]

        GLOBAL = torch.full((6,), 2.0, device="cuda")
        """,
        model=model,
    )
    plan = first(response)
    assert response["missing"] == ["block.lin.bias2"] and response["extra"] == ["block.other"]
    launches = [s for s in plan["steps"] if s["op"] == "launch"]
    source = [plan["buffers"][s["args"][0]["buffer"]]["source"] for s in launches]
    assert source[0] == source[1] == {"kind": "state", "name": "block.lin.weight"}
    assert source[2] == {"kind": "scratch"}  # float32 weights, cast as load_state_dict casts
    assert plan["steps"][0]["op"] == "copy"
    cast = plan["steps"][0]
    assert plan["buffers"][cast["src"]["buffer"]]["source"] == {"kind": "state", "name": "block.h16"}
    assert (cast["src"]["dtype"], cast["dst"]["dtype"]) == ("float32", "float16")
    assert source[3:] == [
        {"kind": "constant", "path": "block.table[0]"},
        {"kind": "constant", "path": "block.other"},
        {"kind": "constant", "path": "wt"},
        {"kind": "constant", "path": "::GLOBAL"},
    ]


def nn_with_linear() -> torch.nn.Module:
    model = torch.nn.Module()
    model.block = torch.nn.Module()
    model.block.lin = torch.nn.Linear(4, 8)
    model.block.lin.bias2 = torch.nn.Parameter(torch.zeros(1))
    model.block.h16 = torch.nn.Parameter(torch.zeros(8))
    return model


def test_modules_that_cast_move_copy_and_tie_in_init():
    plan = plan_of(
        """
        import copy

        class ModelNew(nn.Module):
            def __init__(self):
                super().__init__()
                self.a = nn.Linear(4, 4).to(torch.float16)
                self.b = copy.deepcopy(self.a)
                self.c = nn.Linear(4, 4).half().cuda()
                self.c.weight = self.a.weight
                self.norm = nn.BatchNorm1d(4)
                self.attention = nn.MultiheadAttention(4, 2)
                self.layers = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2), 2)
                for p in self.parameters():
                    p.requires_grad_(False)

            def forward(self, x):
                return run(self.a.weight), run(self.b.weight), run(self.c.weight), run(self.norm.running_mean)
        """
    )
    launches = [s for s in plan["steps"] if s["op"] == "launch"]
    paths = [plan["buffers"][s["args"][0]["buffer"]]["source"]["path"] for s in launches]
    assert paths == ["a.weight", "b.weight", "a.weight", "norm.running_mean"]
    assert plan["findings"] == []


def test_a_cpu_tensor_does_not_reach_a_kernel():
    body = "class ModelNew(nn.Module):\n    def forward(self, x):\n        return run(torch.zeros(4), x)"
    response = trace(body)
    assert response["error"]["type"] == "ValueError"
    assert "cannot be accessed from Triton (cpu tensor?)" in response["error"]["message"]


# launch forms -------------------------------------------------------------------------------------------------------


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


def test_the_number_of_variants_is_bounded():
    assert len(trace(TUNED, max_variants=1)["plans"]) == 1


# findings -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "tier", "body", "text"),
    [
        ("torch-compute", "proof", "y = x + 1\nreturn run(y)", "x + 1"),
        ("torch-compute", "proof", "return run(x).sum()", ".sum()"),
        ("torch-compute", "proof", "o = run(x)\nx.mul_(2)\nreturn o", "mul_"),
        ("torch-compute", "proof", "return torch.matmul(x.view(10, 10), x.view(10, 10))", "matmul"),
        ("reads-data", "untraceable", "n = x[0].item()\nreturn run(x)", ".item()"),
        ("reads-data", "untraceable", "if x[0] > 0:\n    return x\nreturn run(x)", "if x[0]"),
        ("reads-data", "untraceable", "n = x.tolist()\nreturn run(x)", "tolist"),
        ("reads-data", "untraceable", "n = x.cpu().numpy()\nreturn run(x)", "numpy"),
        ("reads-data", "untraceable", "n = x.nonzero()\nreturn run(x)", "nonzero"),
        ("side-stream", "proof", "with torch.cuda.stream(torch.cuda.Stream()):\n    return run(x)", None),
        ("cuda-graph", "untraceable", "g = torch.cuda.CUDAGraph()\nreturn run(x)", "CUDAGraph"),
        ("reads-clock", "untraceable", "t = triton.testing.do_bench(lambda: run(x))\nreturn run(x)", "do_bench"),
        ("thread", "proof", "import threading\nthreading.Thread(target=run).start()\nreturn run(x)", "Thread"),
        ("process", "proof", "import os\nos.fork()\nreturn run(x)", "fork"),
        ("file-access", "proof", "open('y', 'w').write('1')\nreturn run(x)", "open"),
        ("tensor-subclass", "proof", "class T(torch.Tensor): pass\nreturn run(x).as_subclass(T)", "as_subclass"),
        ("tensor-subclass", "proof", "o = run(x)\no.double = lambda: o\nreturn o", None),
        ("output-type", "unsupported", "return {1, 2}", None),
    ],
)
def test_findings_with_their_line(rule: str, tier: str, body: str, text: str | None):
    plan = forward(body)
    assert (rule, tier) in rules(plan)
    if text is not None:
        finding = next(f for f in plan["findings"] if f["rule"] == rule)
        lines = (HEAD + module(body)).splitlines()
        assert text in lines[finding["line"] - 1] or "return o" in lines[finding["line"] - 1], finding


def test_the_trace_goes_on_after_compute():
    plan = forward("y = x * 2\nz = torch.relu(y)\nreturn run(z)")
    assert [r for r, _ in rules(plan)] == ["torch-compute", "torch-compute"]
    assert ops(plan) == ["launch"]


def test_ordered_side_streams_pass():
    plan = forward(
        """
        side, main = torch.cuda.Stream(), torch.cuda.current_stream()
        side.wait_stream(main)
        with torch.cuda.stream(side):
            o = run(x)
        main.wait_stream(side)
        return o
        """
    )
    assert plan["findings"] == []


def test_pointers_as_numbers_are_relocated():
    plan = forward(
        """
        o = torch.empty_like(x)
        double[(2,)](x, o, 100, B=64 if x.data_ptr() % 16 == 0 else 32)
        double[(2,)](x.data_ptr() + 16, o, 100, B=64)
        return o
        """
    )
    assert plan["findings"] == []
    assert plan["steps"][1]["args"][0] == {"kind": "pointer", "buffer": 0, "offset": 16}
    assert plan["kernels"][1]["params"][0]["ty"] == "i64"
    plan = forward("o = torch.empty_like(x)\ndouble[(2,)](x, o, x.data_ptr() >> 20, B=64)\nreturn o")
    assert ("raw-pointer", "untraceable") in rules(plan)


def test_kernels_that_are_not_in_the_file():
    plan = plan_of(
        """
        def make():
            src = "x = 1"
            exec(src)
            @triton.jit
            def double(x, o, n, B: tl.constexpr):
                tl.store(o, 1.0)
            return double

        class ModelNew(nn.Module):
            def forward(self, x):
                o = torch.empty_like(x)
                k = make()
                k._unsafe_update_src(k.src.replace("1.0", "2.0"))
                k[(2,)](x, o, 100, B=64)
                return o
        """
    )
    assert ("kernel-not-in-file", "untraceable") in rules(plan)


def test_unknown_storage():
    plan = plan_of(
        """
        hidden = (lambda t: lambda: t)(torch.ones(100, device="cuda"))

        class ModelNew(nn.Module):
            def forward(self, x):
                return run(hidden())
        """
    )
    assert ("unknown-storage", "proof") in rules(plan)


STATES = {
    "counter": "self.n = getattr(self, 'n', 0) + 1",
    "global": "global COUNT; COUNT += 1",
    "cache": "CACHE.setdefault(x.shape, run(x))",
    "closure": "bump()",
    "class": "type(self).hits = getattr(type(self), 'hits', 0) + 1",
    "default": "remember(x)",
    "function": "run.calls = getattr(run, 'calls', 0) + 1",
}


@pytest.mark.parametrize("name", STATES)
def test_hidden_state_is_seen_even_without_effect(name: str):
    plan = plan_of(
        f"""
        COUNT, CACHE = 0, {{}}

        def counter():
            n = 0
            def bump():
                nonlocal n
                n += 1
            return bump

        bump = counter()

        def remember(x, seen=[]):
            seen.append(x)

        class ModelNew(nn.Module):
            def forward(self, x):
                {STATES[name]}
                return run(x)
        """
    )
    assert ("hidden-state", "proof") in rules(plan)


@pytest.mark.parametrize(
    "condition",
    [
        "calls() > 2",
        "time.time() > START + 60",
        "torch.is_grad_enabled()",
        "random.random() < 0.5",
        "x.data_ptr() & 2**21",
    ],
)
def test_a_plan_that_depends_on_circumstances_is_refused(condition: str):
    plan = plan_of(
        f"""
        import itertools
        calls, START = itertools.count().__next__, time.time()

        class ModelNew(nn.Module):
            def forward(self, x):
                o = torch.empty_like(x)
                double[(2,)](x, o, 100, B=64)
                for _ in range(16):
                    if {condition}:
                        double[(1,)](x, o, 100, B=64)
                return o
        """
    )
    assert {r for r, _ in rules(plan)} & {"hidden-state", "grad-mode", "raw-pointer"}


def test_caches_without_tensors_are_harmless():
    plan = plan_of(
        """
        @functools.lru_cache
        def block(n):
            return triton.next_power_of_2(n)

        class ModelNew(nn.Module):
            def forward(self, x):
                o = torch.empty_like(x)
                double[(1,)](x, o, 100, B=block(x.numel()))
                return o
        """
    )
    assert plan["findings"] == []
    plan = plan_of(
        """
        @functools.lru_cache
        def cached(x):
            return run(x)

        class ModelNew(nn.Module):
            def forward(self, x):
                return cached(x)
        """
    )
    assert ("hidden-state", "proof") in rules(plan)


@pytest.mark.parametrize(
    "line",
    [
        "torch.allclose = lambda *a, **k: True",
        "triton.runtime.jit.JITFunction.run = None",
        "tl.exp = tl.log",
        "time.perf_counter = lambda: 0",
        "torch.set_default_dtype(torch.float16)",
        "torch.backends.cudnn.deterministic = True",
        "torch.Tensor.abs = None",
        "import sys; sys.modules['torch.testing'] = None",
        "nn.Module.__call__ = nn.Module.forward",
        "triton.knobs.runtime.launch_enter_hook = print",
    ],
)
def test_tampering(line: str):
    plan = forward(f"{line}\nreturn run(x)" if "__call__" not in line and "run = None" not in line else "return run(x)")
    if "__call__" in line or "run = None" in line:
        plan = trace(f"class ModelNew(nn.Module):\n    def forward(self, x):\n        return x\n\n{line}\n")
        findings = plan["plans"][0]["findings"] if "plans" in plan else plan["findings"]
        assert "tampering" in [f["rule"] for f in findings]
    else:
        assert "tampering" in [r for r, _ in rules(plan)]


# errors -------------------------------------------------------------------------------------------------------------


def test_errors_name_the_line():
    response = traced("x = (\n", signature_of([X]))
    assert response["error"]["kind"] == "syntax" and response["error"]["line"] == 1
    assert traced("x = 1\n", signature_of([X]))["error"]["kind"] == "missing-class"
    response = trace("class ModelNew(nn.Module):\n    def __init__(self, n):\n        super().__init__()")
    assert response["error"]["type"] == "TypeError"
    response = trace("class ModelNew(nn.Module):\n    def forward(self, x):\n        raise ValueError('no')")
    assert (response["error"]["kind"], response["error"]["type"]) == ("exception", "ValueError")
    assert response["error"]["line"] == len(HEAD.splitlines()) + 3
    response = trace("import sys\nsys.exit(3)")
    assert response["error"]["type"] == "SystemExit"
    response = trace("class ModelNew(nn.Module):\n    def forward(self, x):\n        return self.forward(x)")
    assert response["error"]["type"] == "RecursionError"


def test_endless_launches_end_the_trace():
    source = HEAD + module("while True:\n    run(x, x)")

    def limited(scratch: str) -> dict[str, Any]:
        trace_record.MAX_STEPS = 300
        return job.run(request_of(source, signature_of([X])), scratch)

    with tempfile.TemporaryDirectory() as scratch:
        plan = first(in_child(limited, scratch))
    assert rules(plan) == [("too-many-steps", "untraceable")]
    assert len(plan["steps"]) == 300


# what the file may ask ------------------------------------------------------------------------------------------------


def test_occupancy_code_gets_the_compiled_kernel_s_figures():
    plan = forward(
        """
        o = torch.empty_like(x)
        kernel = double.warmup(x, o, 100, B=64, num_warps=4, grid=(1,))
        kernel._init_handles()
        assert 0 < kernel.n_regs <= 255 and kernel.n_spills == 0 and kernel.metadata.num_warps == 4
        assert ".visible .entry double" in kernel.asm["ptx"]
        kernel[(2 + kernel.metadata.shared, 1, 1)](x, o, 100, 64)
        return o
        """
    )
    assert plan["findings"] == []
    assert plan["steps"][0]["grid"] == [2, 1, 1]


@pytest.mark.parametrize(
    "body",
    [
        "assert x.is_cuda and x.get_device() == 0\nreturn run(torch.empty(100, device=torch.cuda.current_device()), x)",
        "with torch.autocast('cuda', dtype=torch.float16):\n    return run(x)",
        "return run(nn.functional.dropout(nn.Identity()(nn.Flatten(0)(x)), 0.5, training=False))",
        "return run(x.view(int(torch.prod(torch.tensor(x.shape)).item())))",
        "e = torch.cuda.Event()\ne.record()\ntorch.cuda.current_stream().wait_event(e)\nreturn run(x)",
        "r = torch.rand(100, device=x.device, generator=torch.Generator(device=x.device))\nreturn run(r)",
        "print(x, x.shape)\ntorch._assert(x.shape[0] == 100, 'no')\nreturn run(x)",
        "return run(x.half().float().to('cuda:0', non_blocking=True).type(torch.float32))",
    ],
)
def test_host_code_that_is_fine(body: str):
    plan = forward(body)
    assert plan["findings"] == []
    assert ops(plan)[-1] == "launch"


def test_numpy_arrays_are_literals():
    plan = forward(
        """
        import numpy as np
        return run(torch.from_numpy(np.arange(4, dtype=np.float32)).to(x.device))
        """
    )
    assert ops(plan) == ["literal", "copy", "launch"]
    assert plan["steps"][0]["values"] == [0.0, 1.0, 2.0, 3.0]


def test_gradient_mode_is_evidence_only():
    plan = forward("return run(run(x)) if torch.is_grad_enabled() else run(x)")
    assert rules(plan) == [("grad-mode", "evidence")]


def test_what_fake_tensors_cannot_do_is_our_fault():
    response = trace(module("return torch.nested.nested_tensor([x])"))
    assert response["error"]["kind"] == "unsupported"


def test_training_mode_is_the_signature_s():
    body = module("return run(x) if self.training else run(run(x))")
    assert len(plan_of(body, training=True)["steps"]) == 1
    assert len(plan_of(body, training=False)["steps"]) == 2


def test_globals_of_a_kernel_have_the_values_that_the_file_says():
    text = """
    SCALE = tl.constexpr(2)
    SIZE: tl.constexpr = tl.constexpr(64)

    @triton.jit
    def scaled(x, o, n):
        i = tl.arange(0, SIZE)
        tl.store(o + i, tl.load(x + i, mask=i < n) * SCALE, mask=i < n)

    {between}

    class ModelNew(nn.Module):
        def forward(self, x):
            o = torch.empty_like(x)
            scaled[(1,)](x, o, 60)
            return o
    """
    assert plan_of(text.replace("{between}", ""))["findings"] == []
    plan = plan_of(text.replace("{between}", "globals()['SCALE'] = tl.constexpr(3)"))
    assert ("kernel-global", "proof") in rules(plan)


def test_overriding_an_op_of_torch_is_refused():
    plan = plan_of(
        """
        lib = torch.library.Library("aten", "IMPL")
        lib.impl("relu", lambda x: run(x), "CUDA")

        class ModelNew(nn.Module):
            def forward(self, x):
                return torch.relu(x)
        """
    )
    assert ("tampering", "proof") in rules(plan)


def test_a_cached_property_of_a_number_is_harmless():
    plan = plan_of(
        """
        class ModelNew(nn.Module):
            @functools.cached_property
            def programs(self):
                return torch.cuda.get_device_properties(0).multi_processor_count

            def forward(self, x):
                o = torch.empty_like(x)
                double[(self.programs,)](x, o, 100, B=64)
                return o
        """
    )
    assert plan["findings"] == []


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("", "missing-class"),
        ("\x00\x01\xff", "syntax"),
        ("\udc80", "syntax"),
        ("(" * 5000, "syntax"),
        ("# coding: utf-7\nx = 1", "missing-class"),
        ("raise KeyboardInterrupt", "exception"),
        ("class ModelNew: __slots__ = ()", "exception"),
        ("ModelNew = 3", "missing-class"),
        ("class ModelNew:\n    def __call__(self, x): return x", None),
        (
            "import builtins; builtins.sorted = None\nclass ModelNew:\n    def __call__(self, x): return x",
            "exception",
        ),
        ("import os; os.environ = None\nclass ModelNew:\n    def __call__(self, x): return x", None),
        ("class Bad(Exception):\n    def __str__(self): raise self\nraise Bad()", "exception"),
    ],
)
def test_hostile_files_get_an_answer(source: str, kind: str | None):
    response = traced(source, signature_of([X]))
    assert response.get("error", {}).get("kind") == kind, response


def test_warming_up_asks_cuda_nothing():
    """A zygote that has initialised CUDA breaks CUDA in every child."""
    text = """
import torch

def refuse(*args):
    raise SystemExit("CUDA was asked")

for name in ("_cuda_getDeviceCount", "_cuda_init", "_ensureCUDADeviceGuardSet"):
    setattr(torch._C, name, refuse)
from tilewright.cell import trace
trace.warm()
"""
    root = os.path.join(os.path.dirname(__file__), "..")
    done = subprocess.run([sys.executable, "-c", text], cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_kernel_may_end_in_a_comment():
    plan = plan_of(
        """
        @triton.jit
        def commented(x,  # first
                      n):
            tl.store(x, n)
            # the end

        # not part of it

        class ModelNew(nn.Module):
            def forward(self, x):
                commented[(1,)](x, 3)
                return x
        """
    )
    assert plan["findings"] == []


def test_a_file_that_tests_itself():
    text = """
    class ModelNew(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = torch.zeros(100, device="cuda")
            run(torch.ones(3, device="cuda"), {written})

        def forward(self, x):
            return run(self.table, x)

    print(ModelNew().cuda()(torch.rand(100).cuda()))
    """
    plan = plan_of(text.replace("{written}", "torch.ones(3, device='cuda')"))
    assert rules(plan) == [("outside-forward", "evidence")]
    assert ops(plan) == ["launch"]
    plan = plan_of(text.replace("{written}", "self.table"))
    assert ("outside-forward", "untraceable") in rules(plan)


def test_a_descriptor_larger_than_its_tensor():
    plan = plan_of(
        """
        from triton.tools.tensor_descriptor import TensorDescriptor

        @triton.jit
        def k(d, o):
            tl.store(o, tl.sum(d.load([0, 0])))

        class ModelNew(nn.Module):
            def forward(self, x):
                k[(1,)](TensorDescriptor(x, [64, 64], [64, 1], [16, 16]), x)
                return x
        """
    )
    assert rules(plan) == [("out-of-bounds-view", "proof")]


def test_what_was_seen_before_an_exception_is_told():
    response = trace(module("y = x * 2\nraise ValueError('later')"))
    assert response["error"]["message"] == "later"
    assert [f["rule"] for f in response["findings"]] == ["torch-compute"]
