"""Which of the screen's open calls really ran: a trace proves only what it executed.

The screen names calls and tensor operators that it cannot clear, by their place in the file. What ran is seen one
bytecode instruction at a time: CPython keeps the place of every instruction (`co_positions`), and a call or operator
is one instruction with the place of its expression.
"""

from __future__ import annotations

import contextlib
import dis
import sys
import types
from collections.abc import Iterator
from typing import Any

_CALLS = frozenset(op for name, op in dis.opmap.items() if name.startswith(("CALL", "WITH_EXCEPT_START")))
_OPERATORS = frozenset(
    op
    for name, op in dis.opmap.items()
    if name.startswith(
        ("BINARY_", "UNARY_", "COMPARE_OP", "CONTAINS_OP", "STORE_SUBSCR", "STORE_SLICE", "DELETE_SUBSCR")
    )
)
_EXTENDED = dis.EXTENDED_ARG
_TOOL = 4  # of sys.monitoring's six; 3 and 4 have no set use

Place = tuple[int, int, int, int]
"""First line, first column, last line, column behind the last; lines from 1, columns from 0 in UTF-8 bytes."""


class Coverage:
    """Watches the code of one file, which is compiled before it runs: code that a file makes itself counts for nothing.

    `calls` are places of `tilewright_contract::OpenCall`.
    """

    def __init__(self, code: types.CodeType, calls: list[dict[str, Any]]) -> None:
        self._places: list[Place] = [(c["line"], c["column"], c["end_line"], c["end_column"]) for c in calls]
        self._codes: list[types.CodeType] = []
        # By identity: what the file compiles itself may compare equal to the file's own code, or claim its places.
        self._wanted: dict[int, dict[int, int]] = {}
        self._hit: set[int] = set()
        if self._places:
            self._find(code)

    def ran(self) -> list[int]:
        """Indices of the calls that ran, in order."""
        return sorted(self._hit)

    def _find(self, code: types.CodeType) -> None:
        """Notes the instructions of `code`, and of what is defined in it, that are open calls."""
        wanted: dict[int, int] = {}
        ops = code.co_code[::2]
        for at, (line, end_line, column, end_column) in enumerate(code.co_positions()):
            if None in (line, end_line, column, end_column):
                continue
            index = self._match(ops[at], (line, column, end_line, end_column))  # type: ignore[arg-type]
            while index is not None:
                wanted[at * 2] = index
                at -= 1  # prefixes that widen the argument: an event may name the first of them
                if at < 0 or ops[at] != _EXTENDED:
                    break
        if wanted:
            self._codes.append(code)
            self._wanted[id(code)] = wanted
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                self._find(constant)

    def _match(self, op: int, place: Place) -> int | None:
        """The open call that an instruction at this place is.

        Only calls end in their own bracket, so the end names them; the start of a call of a method on a later line is
        the method's name. An operator has exactly its expression's place.
        """
        if place in self._places and (op in _CALLS or op in _OPERATORS):
            return self._places.index(place)
        if op not in _CALLS:
            return None
        for index, wanted in enumerate(self._places):
            if wanted[2:] == place[2:] and wanted[:2] <= place[:2]:
                return index
        return None

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Notes the open calls that run meanwhile in this thread."""
        if not self._codes:
            yield
        elif sys.version_info >= (3, 12):
            with self._monitored():
                yield
        else:
            with self._traced():
                yield

    @contextlib.contextmanager
    def _traced(self) -> Iterator[None]:
        wanted, hit = self._wanted, self._hit

        def local(frame: types.FrameType, event: str, argument: Any) -> Any:
            if event == "opcode":
                index = wanted[id(frame.f_code)].get(frame.f_lasti)
                if index is not None:
                    hit.add(index)
            return local

        def trace(frame: types.FrameType, event: str, argument: Any) -> Any:
            if id(frame.f_code) not in wanted:
                return None
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
            return local

        sys.settrace(trace)
        try:
            yield
        finally:
            sys.settrace(None)

    @contextlib.contextmanager
    def _monitored(self) -> Iterator[None]:
        """Python 3.12 and later: events of the file's own code alone, each instruction once."""
        monitoring: Any = getattr(sys, "monitoring")  # noqa: B009  (this file is checked as Python 3.11)
        event = monitoring.events.INSTRUCTION
        wanted, hit = self._wanted, self._hit

        def instruction(code: types.CodeType, offset: int) -> Any:
            index = wanted.get(id(code), {}).get(offset)
            if index is not None:
                hit.add(index)
            return monitoring.DISABLE

        monitoring.use_tool_id(_TOOL, "tilewright")
        monitoring.register_callback(_TOOL, event, instruction)
        for code in self._codes:
            monitoring.set_local_events(_TOOL, code, event)
        try:
            yield
        finally:
            for code in self._codes:
                monitoring.set_local_events(_TOOL, code, 0)
            monitoring.register_callback(_TOOL, event, None)
            monitoring.free_tool_id(_TOOL)
