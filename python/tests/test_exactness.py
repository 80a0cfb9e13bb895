"""The emulator against numpy and ml_dtypes: casts among all types, integers, single operations on floats, bit for bit.

The same cases run on a GPU: scripts/gpu/exactness.py.
"""

from __future__ import annotations

import importlib.util
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
import tilewright
import torch

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts" / "gpu"))

import exactness
from exact import cases
from exact.types import TRITON, bits_type, is_float, to_double
from exact_reference import reference

CASES = [case for group in (cases.casts, cases.integers, cases.floats) for case in group() if reference(case)]


def tensor(dtype: str, bits: np.ndarray) -> torch.Tensor:
    """A tensor with these bits."""
    kinds = {"fp8e4nv": "float8_e4m3fn", "fp8e5": "float8_e5m2", "i1": "bool"}
    raw = torch.from_numpy(np.ascontiguousarray(bits).view(np.uint8).copy())
    return raw.view(getattr(torch, kinds.get(dtype, TRITON[dtype])))


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory):
    """All kernels, in one module."""
    path = tmp_path_factory.mktemp("exact") / "exact_kernels.py"
    path.write_text(exactness.HEADER + "\n\n".join(case.source() for case in CASES))
    spec = importlib.util.spec_from_file_location("exact_kernels", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def differences(case: cases.Case, got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Which elements differ; NaNs are all equal, and so are zeros where the order of two is left open."""
    same = got == want
    if is_float(case.out):
        a, b = to_double(case.out, got), to_double(case.out, want)
        same |= np.isnan(a) & np.isnan(b)
        if case.operation in ("minimum", "maximum", "minimum_nan", "maximum_nan"):
            same |= (a == 0) & (b == 0)
    return np.flatnonzero(~same)


GROUPS = defaultdict(list)
for one in CASES:
    GROUPS[f"{one.group}: {one.operation}"].append(one)


@pytest.mark.parametrize("name", sorted(GROUPS))
def test_the_emulator_gives_what_numpy_gives(name: str, kernels, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cases, "COUNT", 4096)
    wrong = []
    for case in GROUPS[name]:
        data = case.data()
        want = reference(case)(data)
        if want is None:
            continue
        out = tensor(case.out, np.zeros(len(data[0]), bits_type(case.out)))
        inputs = [tensor(dtype, bits) for dtype, bits in zip(case.inputs, data, strict=True)]
        with tilewright.emulate():
            getattr(kernels, case.name)[(len(data[0]) // cases.BLOCK,)](*inputs, out)
        got = out.view(torch.uint8).numpy().view(bits_type(case.out))
        at = differences(case, got, want)
        if at.size:
            first = at[0]
            shown = [hex(int(bits[first])) for bits in data]
            wrong.append(
                f"{case.name}: {at.size} differ: {shown} -> {hex(int(got[first]))}, not {hex(int(want[first]))}"
            )
    assert not wrong, "\n".join(wrong)


def test_there_are_enough_cases() -> None:
    assert len(CASES) >= 350
