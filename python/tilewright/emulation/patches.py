"""Attributes that are replaced for a while."""

from __future__ import annotations

from typing import Any

_MISSING = object()


class Patches:
    """Replaced attributes, which `restore` puts back."""

    def __init__(self) -> None:
        self._old: list[tuple[Any, str, Any]] = []

    def set(self, owner: Any, name: str, value: Any) -> None:
        """Replaces an attribute, also one that is not there."""
        self._old.append((owner, name, vars(owner).get(name, _MISSING)))
        setattr(owner, name, value)

    def restore(self) -> None:
        """Puts everything back, last first."""
        while self._old:
            owner, name, value = self._old.pop()
            if value is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, value)
