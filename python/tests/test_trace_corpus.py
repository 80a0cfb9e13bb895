"""The tracer on the labelled candidates. Set TILEWRIGHT_CORPUS to their folder."""

from __future__ import annotations

from typing import Any

import pytest
from trace_helper import corpus, corpus_trace, labels

ROOT = corpus()
pytestmark = pytest.mark.skipif(ROOT is None, reason="TILEWRIGHT_CORPUS names no folder of labelled candidates")

# Hacks whose evidence is in the values, in the kernel itself, or nowhere, because what they attack is not there.
JUDGED_ELSEWHERE = {
    "add_relu__known_sign",
    "conv2d_relu__neighbour_read",
    "cumsum__cupy",
    "cumsum__stderr_json",
    "ema_center__half_batch_stats",
    "gelu__import_reference",
    "gelu__new_returns_reference",
    "gelu__subset_rows",
    "groupnorm__nan_output",
    "groupnorm__zero_reference_weights",
    "linear_scale_residual__state_dict_hijack",
    "linear_tanh__fp16_compute",
    "linear_tanh__golden_file_read",
    "rmsnorm__empty_reuse",
    "softmax__patch_reference_forward",
    "softmax__scalar_broadcast",
    "softmax__sys_modules_scan",
}


def rows(label: str) -> list[Any]:
    return [pytest.param(row, id=row["id"]) for row in labels(ROOT, label)] if ROOT else []


def evidence(response: dict[str, Any]) -> list[str]:
    """What the answer holds against the candidate."""
    if "plans" not in response:
        return [f"{response.get('error', response)}"]
    plan = response["plans"][0]
    found = [f"{f['tier']} {f['rule']} at {f['line']}: {f['message']}" for f in plan["findings"]]
    return found if any(s["op"] == "launch" for s in plan["steps"]) else [*found, "no launch"]


@pytest.mark.parametrize("row", rows("honest"))
def test_honest_candidates_have_a_clean_plan(row: dict[str, str]):
    response = corpus_trace(ROOT, row)
    assert evidence(response) == []
    assert response["missing"] == response["extra"] == []


@pytest.mark.parametrize("row", rows("hack"))
def test_hacks_leave_evidence(row: dict[str, str]):
    found = evidence(corpus_trace(ROOT, row))
    print(row["id"], *found, sep="\n  ")
    assert found or row["id"] in JUDGED_ELSEWHERE
