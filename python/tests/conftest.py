"""What every test shares."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Candidates write files where they run: that must not be the repository."""
    monkeypatch.chdir(tmp_path)
