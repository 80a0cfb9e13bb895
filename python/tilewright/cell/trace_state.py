"""Writes of `forward` to the module's and the file's own state, whether or not they have an effect here."""

from __future__ import annotations

import functools
import gc
import re
import types
from typing import TYPE_CHECKING, Any

import torch

from .trace_parts import PLAIN, Token, foreign_parts, generators, named, parts, same, settings, token
from .trace_purity import finding

if TYPE_CHECKING:
    from .trace import Session

_MAX_NODES = 50_000
_MAX_DEPTH = 12

State = dict[str, Token]


class Fingerprint:
    """The state that a module, the file's globals and what it sets elsewhere hold, place by place."""

    def __init__(self, session: Session, module: Any) -> None:
        self._session, self._module = session, module
        self._stores = session.source.stores()
        self._changes: list[State] = []
        self._foreign: set[str] = set()
        """Places in objects of torch's and Triton's own classes."""
        self._last = self._walk()

    def look(self) -> None:
        """Notes what changed since the last look: called after each of some calls of `forward`."""
        now = self._walk()
        places = self._last.keys() | now.keys()
        self._changes.append({p: now.get(p, ()) for p in places if not same(self._last.get(p), now.get(p))})
        self._last = now

    def skip(self) -> None:
        """Begins anew: what changed since the last look is not held against `forward`."""
        self._last = self._walk()

    def findings(self) -> list[dict[str, Any]]:
        """What changed, as findings. Numbers that the first call keeps and no later one changes are a cache of what
        the shapes decide: worth knowing, no more."""
        first, later = self._changes[0], {k: v for change in self._changes[1:] for k, v in change.items()}
        found = []
        # What is torch's own settles with the first call.
        for place in sorted((first.keys() - self._foreign) | later.keys()):
            settled = place not in later and (_is_setting(first[place]) or _holds_settings(place, first))
            # Whether it trains is for the caller to say.
            settled = settled and not place.endswith(".training")
            rule, what = ("keeps-numbers", "keeps a number in") if settled else ("hidden-state", "changes")
            found.append(finding(self._session, rule, f"forward {what} {_readable(place)}", self._line(place)))
        found.sort(key=lambda f: f["tier"] != "proof")
        return found[:8] + self._caches()

    def _line(self, place: str) -> int:
        """Line that stores to the place, or that defines the function that remembers it."""
        names = [part.split("[")[0] for part in reversed(_REMEMBERED.sub("", place).split("."))]
        lines = (self._session.source.store_line(name) or self._session.source.def_line(name) for name in names)
        return next((line for line in lines if line), 0)

    def _caches(self) -> list[dict[str, Any]]:
        found = []
        for place, value in self._cached.items():
            if _holds_tensor(value):
                name = getattr(value, "__name__", place)
                message = f"the cache of {name} keeps tensors"
                found.append(finding(self._session, "hidden-state", message, self._session.source.store_line(name)))
        return found

    def _walk(self) -> State:
        found: State = {}
        self._cached: dict[str, Any] = {}
        seen: set[int] = set()
        self._visit(self._module, "self", found, seen, 0)
        for name, value in list(self._session.namespace.items()):
            if not name.startswith("__"):
                found[name] = token(value)
                self._visit(value, name, found, seen, 1)
        registry = self._session.namespace.get("__warningregistry__")
        if isinstance(registry, dict):
            found["__warningregistry__[len]"] = token(len(registry))
        if "cache_info" in self._session.source.text:
            found |= {f"{p}.cache_info()": token(repr(v.cache_info())) for p, v in self._cached.items()}
        found |= {place: token(value) for place, value in (*generators(), *settings())}
        for place, value in named(self._stores, self._session.namespace):
            found.setdefault(place, token(value))
            self._visit(value, place, found, seen, 1)
        return found

    def _visit(self, value: Any, place: str, found: State, seen: set[int], depth: int) -> None:
        if depth > _MAX_DEPTH or len(found) > _MAX_NODES or isinstance(value, PLAIN) or id(value) in seen:
            return
        seen.add(id(value))
        if isinstance(value, functools._lru_cache_wrapper):
            self._cached[place] = value
        own = parts(value)
        for name, child in (*own, *foreign_parts(value)):
            inner = f"{place}{name}"
            found[inner] = token(child)
            if place in self._foreign or not own:
                self._foreign.add(inner)
            self._visit(child, inner, found, seen, depth + 1)


_REMEMBERED = re.compile(r"\.<(\w+)@\d+>")
"""What `trace_parts` calls a result that an lru_cache holds."""


def _readable(place: str) -> str:
    """The place without numbers that mean nothing to a reader."""
    return re.sub(r"@\d+", "", _REMEMBERED.sub(r"'s cached \1", place))


def _is_setting(found: Token) -> bool:
    """Whether what is there now is a number, a text, a dtype or a tuple of such, or code."""
    return bool(found) and (found[0] == "plain" or found[:2] == ("object", "code"))


def _holds_settings(place: str, changes: State) -> bool:
    """Whether a container or an instance of a class of the file is new there, and all in it is settings or such."""
    inner = [v for p, v in changes.items() if p.startswith(place)]
    return all(_is_setting(v) or v[:2] in (("object", "container"), ("object", "instance")) for v in inner)


def _holds_tensor(wrapper: Any) -> bool:
    """Whether an lru_cache holds tensors as keys or values."""
    frontier, seen = [wrapper], {id(wrapper), id(wrapper.__wrapped__)}
    for _ in range(4):
        following = []
        for item in gc.get_referents(*frontier) if frontier else []:
            if isinstance(item, torch.Tensor):
                return True
            if id(item) not in seen and not isinstance(item, (types.FunctionType, type, types.ModuleType, str)):
                seen.add(id(item))
                following.append(item)
        frontier = following[:1000]
    return False
