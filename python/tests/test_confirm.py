"""What the process that confirms a file is shown of the machine."""

from __future__ import annotations

import pytest
from tilewright.cell import confirm


@pytest.mark.parametrize(
    ("before", "device", "after"),
    [
        (None, "cuda:0", "0"),
        (None, "cuda:1", "1"),
        ("", "cuda:1", "1"),
        ("3,5", "cuda:1", "5"),
        ("GPU-a,GPU-b", "cuda:0", "GPU-a"),
    ],
)
def test_cuda_sees_the_device_of_the_run_alone(
    monkeypatch: pytest.MonkeyPatch, before: str | None, device: str, after: str
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if before is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", before)
    assert confirm.show_one_device(device) == "cuda:0"
    assert confirm.os.environ["CUDA_VISIBLE_DEVICES"] == after


def test_what_stands_in_for_a_device_in_tests_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert confirm.show_one_device("cpu") == "cpu"
    assert "CUDA_VISIBLE_DEVICES" not in confirm.os.environ
