"""The tracer on candidates written for one feature each: errors, and what a file may ask."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from typing import Any

import pytest
import torch
from tilewright.cell import channel, trace_record, trace_surroundings
from tilewright.cell import trace as job
from trace_bench import HEAD, X, first, forward, module, ops, plan_of, rules, trace
from trace_helper import in_child, request_of, signature_of, traced


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


@pytest.mark.parametrize(
    "body", ["torch.empty(1 << 50, device=x.device)", "torch.zeros_like(x).expand(1 << 40, 100).clone()"]
)
def test_more_memory_than_the_device_has_is_an_exception(body: str):
    response = trace(module(f"{body}\nreturn run(x)"))
    assert response["error"]["type"] == "OutOfMemoryError" and "Tried to allocate" in response["error"]["message"]


def test_half_a_character_in_an_answer_is_none():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        channel.send_frame(ours.fileno(), {"message": "half \ud800 and \u00e9\u2028"})
        assert channel.receive_frame(theirs.fileno()) == {"message": "half ? and \u00e9\u2028"}


def test_an_operator_that_is_defined_again_leaves_the_first_one_alone():
    def once(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    operator = torch.library.custom_op("tilewright_test::once", once, mutates_args=())
    with trace_surroundings.libraries_kept(), pytest.raises(RuntimeError):
        torch.library.custom_op("tilewright_test::once", once, mutates_args=())
    assert operator(torch.ones(2)).tolist() == [2.0, 2.0]


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
