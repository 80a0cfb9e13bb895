"""The pytest plugin, in sessions of its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

SUITE = """
import emulated_kernels as kernels
import pytest
import torch

DEVICE = "cuda"
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

@pytest.mark.parametrize("n", [16, 32])
def test_copy(n):
    x, out = torch.randn(n, device=DEVICE), torch.empty(n, device=DEVICE)
    kernels.copy_kernel[(n // 16,)](x, out, BLOCK=16)
    torch.testing.assert_close(out, x)

def test_too_far():
    kernels.copy_kernel[(2,)](torch.zeros(16, device=DEVICE), torch.zeros(32, device=DEVICE), BLOCK=16)

def test_wrong_grid():
    x, out = torch.randn(32, device=DEVICE), torch.zeros(32, device=DEVICE)
    kernels.copy_kernel[(1,)](x, out, BLOCK=16)
    torch.testing.assert_close(out, x)

def test_clock():
    kernels.clock_kernel[(1,)](torch.zeros(1, dtype=torch.int32, device=DEVICE))
"""

FIXTURE = """
import emulated_kernels as kernels
import torch

def test_copy(tilewright_emulate):
    x, out = torch.randn(16, device="cuda"), torch.empty(16, device="cuda")
    kernels.copy_kernel[(1,)](x, out, BLOCK=16)
    assert torch.equal(out, x)
    assert tilewright_emulate.record.launches["copy_kernel"] == 1

def test_nothing_is_on_here():
    assert not torch.zeros(1).is_cuda
"""


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Callable[..., pytest.RunResult]:
    """Runs a suite in another process, with the kernels of these tests."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))

    def run(suite: str, *options: str) -> pytest.RunResult:
        pytester.makepyfile(suite)
        return pytester.runpytest_subprocess("-p", "no:cacheprovider", *options)

    return run


def test_a_suite_for_a_gpu(run: Callable[..., pytest.RunResult], pytester: pytest.Pytester) -> None:
    result = run(SUITE, "--triton-emulate", "--triton-emulate-unsupported=skip", "--triton-emulate-report=tests.jsonl")
    result.assert_outcomes(passed=2, failed=2, skipped=1)
    result.stdout.fnmatch_lines(
        [
            "*= Triton kernels in the emulator =*",
            "4 of 5 tests launched kernels: 1 kernels, 4 launches",
            "findings: out-of-bounds in copy_kernel (emulated_kernels.py:*)",
            "not supported: tt.elementwise_inline_asm in clock_kernel (emulated_kernels.py:*)",
            "FAILED *::test_too_far - tilewright.*",
            "FAILED *::test_wrong_grid - AssertionError*",
        ]
    )
    tests = [json.loads(line) for line in (pytester.path / "tests.jsonl").read_text().splitlines()]
    assert [test["outcome"] for test in tests] == ["passed", "passed", "failed", "failed", "skipped"]
    assert tests[0]["launches"] == {"copy_kernel": 1}
    assert [fault["kind"] for fault in tests[2]["faults"]] == ["out-of-bounds"]


def test_switched_on_in_the_ini_file(run: Callable[..., pytest.RunResult], pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\ntriton_emulate = true\ntriton_emulate_on_fault = ignore\n")
    run(SUITE).assert_outcomes(passed=3, failed=2)


def test_the_fixture(run: Callable[..., pytest.RunResult]) -> None:
    run(FIXTURE).assert_outcomes(passed=2)


def test_without_the_option_nothing_happens(run: Callable[..., pytest.RunResult]) -> None:
    result = run(SUITE)
    result.assert_outcomes(skipped=5)
    result.stdout.no_fnmatch_line("*emulator*")


def test_a_wrong_option_is_refused(run: Callable[..., pytest.RunResult]) -> None:
    result = run(SUITE, "--triton-emulate", "--triton-emulate-target=sm_75")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --triton-emulate: no device of architecture 75 is known; known: *"])
