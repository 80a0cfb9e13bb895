"""A kernel that is written, and one call of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tilewright.teacher.group import Group
from tilewright.teacher.ir import Node, Value
from tilewright.teacher.writer import Writer


@dataclass
class Launch:
    """A kernel and one call of it."""

    writer: Writer
    body: str
    """Text with `{name}` for the kernel's name."""
    label: str
    grid: str
    options: dict[str, Any] = field(default_factory=dict)
    allocations: list[Value] = field(default_factory=list)
    comment: str = ""
    setup: list[str] = field(default_factory=list)
    loop: str = ""
    """A `for` of the host around the launch."""


def label_of(nodes: list[Node]) -> str:
    """A name from the operations of a kernel."""
    names = list(dict.fromkeys(n.label for n in nodes))
    return "_".join(names[:4])


def describe(nodes: list[Node]) -> str:
    """One line about what a kernel computes."""
    names = list(dict.fromkeys(n.label for n in nodes))
    return ", ".join(names)


def store(writer: Writer, value: Value, offset: str, text: str, mask: str) -> None:
    target = value.into or value
    pointer = writer.pointer(target)
    where = pointer if offset == "0" else f"{pointer} + {offset}"
    writer.line(f"tl.store({where}, {text}" + (f", mask={mask})" if mask else ")"))


def finish(writer: Writer, group: Group, grid: str, doc: str, options: dict[str, Any] | None = None) -> Launch:
    body = writer.text("{name}", doc)
    fresh = [v for v in group.stored if v.into is None]
    return Launch(writer, body, label_of(group.nodes), grid, options or {}, fresh)
