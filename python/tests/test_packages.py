"""The packages that everything here rests on are those that were installed.

A candidate that is run outside of a cell, by whoever tries one out, may write into them; what a test says after that
says nothing.
"""

from __future__ import annotations

import base64
import hashlib
import site
from importlib.metadata import distribution
from pathlib import Path

import pytest


@pytest.mark.parametrize("name", ["torch", "triton", "numpy"])
def test_code_is_as_installed(name: str) -> None:
    found = distribution(name)
    changed = []
    for file in found.files or ():
        if file.hash is not None and file.suffix == ".py":
            digest = hashlib.new(file.hash.mode, Path(str(file.locate())).read_bytes()).digest()
            if base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != file.hash.value:
                changed.append(str(file))
    assert found.files, f"{name} has no list of its files"
    assert changed == [], "run `rm -rf .venv` and `make venv`"


def test_nothing_starts_with_python_that_no_package_brought() -> None:
    """A `.pth` file, which every interpreter executes, may import only what the packages' own ones import."""
    lines = {
        line
        for folder in site.getsitepackages()
        for file in Path(folder).glob("*.pth")
        for line in file.read_text().splitlines()
        if line.startswith(("import ", "import\t"))
    }
    assert [line for line in lines if "torch" in line or "triton" in line] == []
