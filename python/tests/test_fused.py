"""The kernels that compare results give the figures that torch gives."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

TOLERANCE = {
    **{
        "rtol": 1e-5,
        "atol": 1e-6,
        "small_threshold": 1e-2,
        "small_error": 1e-7,
        "matched_ratio": 0.9,
        "mean_rel": 1e-5,
    },
    **{"rms_tol": 3.5e-6, "atol_scaled": 3e-5, "reference_factor": 4.0, "regime_factor": 0.0, "mismatch": 0.0},
}
RULES = {
    "elementwise": ("native", "nan_fails"),
    "mere_mare": ("rounded", "pattern"),
    "mere_mare_truncated": ("float64", "pattern"),
    "three_way": ("rounded", "pattern"),
    "scaled_rms": ("float64", "pattern"),
}


PROFILES = json.dumps(
    [
        {"name": rule, "rule": rule, "golden": golden, "non_finite": non_finite, "tolerance": {}, "default": TOLERANCE}
        for rule, (golden, non_finite) in RULES.items()
    ]
)


def differences(*arguments: str, **environment: str) -> str:
    """What `fused_cases.py` prints."""
    command = [sys.executable, str(Path(__file__).with_name("fused_cases.py")), PROFILES, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout[:3000]


def test_interpreted_kernels_give_what_torch_gives() -> None:
    assert differences(TRITON_INTERPRET="1") == ""


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_kernels_give_what_torch_gives() -> None:
    assert differences("cuda:0") == ""
