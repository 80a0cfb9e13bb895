"""What every test shares."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Candidates write files where they run: that must not be the repository."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True, scope="session")
def _autograd_without_threads() -> None:
    """Torch's engine starts a thread for each device when it is first used, and then refuses to work in forked jobs.
    Fake tensors would have it believe in a GPU, so that jobs failed after any test that uses both."""
    if not torch.cuda.is_available():
        torch.ones((), requires_grad=True).backward()
