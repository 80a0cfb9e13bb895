"""What the tracer finds in a candidate, with its line."""

from __future__ import annotations

import pytest
from trace_bench import HEAD, forward, module, ops, plan_of, rules, trace


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
        ("output-type", "unsupported", "return run(x).to('meta')", None),
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
    "kernel": "COPIED.arg_names.append('more')",
    "configuration": "CONFIG.kwargs[len(CONFIG.kwargs)] = 0",
    "configuration's number": "object.__setattr__(CONFIG, 'num_stages', CONFIG.num_stages + 1)",
    "optimizer": "SGD.param_groups.append({})",
    "library": "LIBRARY._op_defs.add(str(len(LIBRARY._op_defs)))",
    "parameter": "self.w.calls = getattr(self.w, 'calls', 0) + 1",
    "tensor's list": "self.w.seen.append(1)",
    "warnings": "warnings.filterwarnings('ignore', str(len(warnings.filters)))",
    "registry": "warnings.warn(str(len(globals().get('__warningregistry__', ()))))",
    "logger": "logging.getLogger('x').setLevel(logging.getLogger('x').level + 1)",
    "handlers": "logging.getLogger('x').addHandler(logging.NullHandler())",
    "hook": "self.register_forward_hook(print).remove()",
}


@pytest.mark.parametrize("name", STATES)
def test_hidden_state_is_seen_even_without_effect(name: str):
    plan = plan_of(
        f"""
        import logging, warnings
        COUNT, CACHE = 0, {{}}
        CONFIG, SGD = triton.Config({{}}), torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.1)
        LIBRARY = torch.library.Library("tilewright_test", "DEF")

        @triton.jit
        def COPIED(x):
            pass

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
            def __init__(self):
                super().__init__()
                self.w = nn.Parameter(torch.zeros(1))
                self.w.seen = []

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
