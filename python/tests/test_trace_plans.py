"""The plans that the tracer makes: launches, memory ops, views, random numbers, weights."""

from __future__ import annotations

import json

import pytest
import torch
from tilewright.cell import ttir
from trace_bench import first, forward, module, ops, plan_of, rules, trace


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
        double[{0: 4}](x, o, 100, B=32)
        odd = type("Grid", (tuple,), {"__len__": lambda self: 1, "__getitem__": lambda self, i: 4})
        double[odd((5, 6))](x, o, 100, B=32)
        return o
        """
    )
    # Triton takes a grid by its length and by index, whatever it iterates over.
    assert [s["grid"] for s in plan["steps"]] == [[4, 2, 3], [4, 1, 1], [4, 1, 1], [4, 1, 1]]


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        ("Mode.A", True),
        ("enum.IntEnum('M', ['A']).A", True),
        ("Word.A", True),
        ("Odd.A", False),
        ("Number(64)", False),
        ("Text('a')", False),
        ("enum.IntFlag('F', ['A']).A", False),
        ("'half \\ud800'", False),
        ("tl.float32", True),
        ("tl.pointer_type(tl.uint8)", True),
        ("tl.pointer_type(tl.uint8, const=True)", False),
        ("wrong", False),
        ("(1, [2.0, tl.constexpr('a')])", True),
        ("Point(1, 2)", False),
        ("Alike()", False),
        ("Told(64)", False),
    ],
)
def test_a_constexpr_does_what_its_value_does(value: str, plain: bool):
    """Triton computes with the object: a class of the file's own could make another kernel of the same number."""
    plan = plan_of(
        f"""
        import collections, enum

        class Mode(enum.IntEnum):
            A = 64

        class Word(str, enum.Enum):
            A = "a"

        class Odd(enum.IntEnum):
            A = 64
            def __mul__(self, other):
                return 0

        class Number(int):
            def __rmul__(self, other):
                return 0

        class Text(str):
            pass

        class Told(tl.constexpr):
            value = property(lambda self: 64, lambda self, value: None)

        class Alike:
            __module__ = "numpy"
            def item(self):
                return 64

        Point = collections.namedtuple("Point", "x y")
        wrong = tl.dtype("fp32")
        wrong.primitive_bitwidth = 16

        @triton.jit
        def k(x, A: tl.constexpr):
            tl.store(x, 1.0)

        class ModelNew(nn.Module):
            def forward(self, x):
                o = torch.empty_like(x)
                k[(1,)](o, {value})
                return o
        """
    )
    assert (("constexpr-kind", "unsupported") in rules(plan)) != plain, plan["findings"]


def test_a_constexpr_reaches_the_compiler_as_it_is():
    """Triton computes with Python's own numbers, whatever their size: what it is given again is the same number."""
    edges = [1 << bits for bits in (7, 31, 32, 53, 62, 63, 64, 65, 127, 14_000)]
    integers = [sign * edge + more for edge in edges for sign in (1, -1) for more in (-1, 0, 1)]
    others = [True, -0.0, 5e-324, 0.1, float("inf"), float("nan"), "0x10", None, (1 << 64, (-(1 << 64), 2.0))]
    plan = plan_of(
        f"""
        from math import inf, nan

        @triton.jit
        def k(x, A: tl.constexpr):
            tl.store(x, 1.0)

        class ModelNew(nn.Module):
            def forward(self, x):
                o = torch.empty_like(x)
                for value in [*(int(text, 16) for text in {[hex(integer) for integer in integers]}), *{others}]:
                    k[(1,)](o, value)
                return o
        """
    )
    assert plan["findings"] == []
    sent = json.loads(json.dumps([kernel["constexprs"]["1"] for kernel in plan["kernels"]]))
    given = [ttir.constexpr(None, value) for value in sent]
    assert given[: len(integers)] == integers
    assert repr(given[len(integers) :]) == repr(others)


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


def test_views_and_copies_of_weights_made_from_numbers_are_of_the_weights():
    model, parameter = torch.nn.Module(), torch.nn.Parameter
    model.scale, model.pair = parameter(torch.tensor(0.7)), parameter(torch.tensor([0.1, 0.2]))
    model.register_buffer("steps", torch.tensor([1.0]))
    views = ["scale", "scale.view(1)", "scale.detach()", "scale.reshape(1, 1)", "scale.expand(3)", "pair[1:]"]
    views += ["pair.t()", "steps.unsqueeze(0)", "scale.clone()"]
    texts = ", ".join(f"self.{view}" for view in views)
    plan = plan_of(
        f"""
        class ModelNew(nn.Module):
            def __init__(self):
                super().__init__()
                self.scale, self.pair = nn.Parameter(torch.tensor(0.7)), nn.Parameter(torch.tensor([0.1, 0.2]))
                self.register_buffer("steps", torch.tensor([1.0]))

            def forward(self, x):
                out = [torch.empty_like(self.scale) for _ in range({len(views)})]
                for t, o in zip([{texts}], out):
                    double[(1,)](t, o, 1, B=64)
                return out
        """,
        model=model,
    )
    assert plan["findings"] == []
    read = [plan["buffers"][s["args"][0]["buffer"]]["source"] for s in plan["steps"] if s["op"] == "launch"]
    names = [view.partition(".")[0].partition("[")[0] for view in views[:-1]]
    assert read == [*({"kind": "state", "name": name} for name in names), {"kind": "scratch"}]
    copied = [s["src"]["buffer"] for s in plan["steps"] if s["op"] == "copy"]
    assert [plan["buffers"][b]["source"]["name"] for b in copied] == ["scale"]


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
