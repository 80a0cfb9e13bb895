"""Which of the screen's open calls really ran: a trace proves only what it executed.

The screen names calls and tensor operators that it cannot clear, by their place in the file. What ran is seen one
bytecode instruction at a time: CPython keeps the place of every instruction (`co_positions`), and a call or operator
is one instruction with the place of its expression.
"""

from __future__ import annotations

import ast
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
_JUMPS = frozenset(op for name, op in dis.opmap.items() if name.startswith("POP_JUMP"))
_EXTENDED = dis.EXTENDED_ARG
_TOOL = 4  # of sys.monitoring's six; 3 and 4 have no set use

Place = tuple[int, int, int, int]
"""First line, first column, last line, column behind the last; lines from 1, columns from 0 in UTF-8 bytes."""


class Coverage:
    """Watches the code of one file, which is compiled before it runs: code that a file makes itself counts for nothing.

    `calls` are places of `tilewright_contract::OpenCall`: calls and operators that must run, branches of which
    something must run, and tests of `if` statements without `else` that must fail.
    """

    def __init__(self, code: types.CodeType, tree: ast.Module, calls: list[dict[str, Any]]) -> None:
        self._places: list[Place] = [(c["line"], c["column"], c["end_line"], c["end_column"]) for c in calls]
        what = [call.get("what", "call") for call in calls]
        self._calls = [index for index, kind in enumerate(what) if kind == "call"]
        self._branches = [index for index, kind in enumerate(what) if kind == "branch"]
        self._bodies = self._bodies_of(tree, [index for index, kind in enumerate(what) if kind == "otherwise"])
        self._jumps: dict[int, dict[int, tuple[int, frozenset[int]]]] = {}
        """By code and offset of a jump that a test ends in: the test, and where its `if` statement goes on inside."""
        self._clearable = [index for index, call in enumerate(calls) if not call.get("certain")]
        self._codes: list[types.CodeType] = []
        # By identity: what the file compiles itself may compare equal to the file's own code, or claim its places.
        self._wanted: dict[int, dict[int, list[int]]] = {}
        self._hit: set[int] = set()
        if self._places:
            self._find(code)

    def wants_more(self) -> bool:
        """Whether a call that another trace could clear has not run yet."""
        return any(index not in self._hit for index in self._clearable)

    def ran(self) -> list[int]:
        """Indices of the calls that ran, in order."""
        return sorted(self._hit)

    def _find(self, code: types.CodeType) -> None:
        """Notes the instructions of `code`, and of what is defined in it, that are open calls."""
        wanted: dict[int, list[int]] = {}
        ops = code.co_code[::2]
        places: list[tuple[int, Place]] = []
        for at, (line, end_line, column, end_column) in enumerate(code.co_positions()):
            if line is None or end_line is None or column is None or end_column is None:
                continue
            place = (line, column, end_line, end_column)
            places.append((at, place))
            for index in self._branches:
                if _within(place, self._places[index]):
                    wanted.setdefault(at * 2, []).append(index)
            call = self._match(ops[at], place)
            while call is not None:
                wanted.setdefault(at * 2, []).append(call)
                at -= 1  # prefixes that widen the argument: an event may name the first of them
                if at < 0 or ops[at] != _EXTENDED:
                    break
        jumps = self._jumps_of(ops, places)
        if wanted or jumps:
            self._codes.append(code)
            self._wanted[id(code)], self._jumps[id(code)] = wanted, jumps
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                self._find(constant)

    def _bodies_of(self, tree: ast.Module, tests: list[int]) -> dict[int, Place]:
        """The body of each `if` statement with one of the tests, by the test's index."""
        found = {}
        known = {self._places[index]: index for index in tests}
        for node in ast.walk(tree) if tests else ():
            if isinstance(node, ast.If) and (index := known.get(_place(node.test, node.test))) is not None:
                found[index] = _place(node.body[0], node.body[-1])
        return found

    def _jumps_of(self, ops: bytes, places: list[tuple[int, Place]]) -> dict[int, tuple[int, frozenset[int]]]:
        """A jump that a test ends in has the place of the test or of the whole statement, and follows the test."""
        found = {}
        by_index = dict(places)
        for index, body in self._bodies.items():
            test = self._places[index]
            of_test = {at for at, place in places if _within(place, test)}
            inside = frozenset(at * 2 for at, place in by_index.items() if at in of_test or _within(place, body))
            for at, op in enumerate(ops):
                if op in _JUMPS:
                    before = at - 1
                    while before > 0 and ops[before] == _EXTENDED:
                        before -= 1
                    if at in of_test or before in of_test:
                        found[at * 2] = (index, inside | {at * 2})
        return found

    def _match(self, op: int, place: Place) -> int | None:
        """The open call that an instruction at this place is.

        Only calls end in their own bracket, so the end names them; the start of a call of a method on a later line is
        the method's name. An operator has exactly its expression's place.
        """
        if op in _CALLS or op in _OPERATORS:
            for index in self._calls:
                if self._places[index] == place:
                    return index
        if op not in _CALLS:
            return None
        for index in self._calls:
            wanted = self._places[index]
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
        wanted, jumps, hit = self._wanted, self._jumps, self._hit
        jumped: dict[int, tuple[int, frozenset[int]]] = {}  # by frame: the jump that it has just done

        def local(frame: types.FrameType, event: str, argument: Any) -> Any:
            if event == "opcode":
                code, at = id(frame.f_code), frame.f_lasti
                hit.update(wanted[code].get(at, ()))
                test = jumped.pop(id(frame), None)
                if test is not None and at not in test[1]:
                    hit.add(test[0])
                if at in jumps[code]:
                    jumped[id(frame)] = jumps[code][at]
            elif event == "exception":
                jumped.pop(id(frame), None)
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
        events = monitoring.events
        wanted, jumps, hit = self._wanted, self._jumps, self._hit

        def instruction(code: types.CodeType, offset: int) -> Any:
            hit.update(wanted.get(id(code), {}).get(offset, ()))
            return monitoring.DISABLE

        def branch(code: types.CodeType, offset: int, destination: int) -> None:
            test = jumps.get(id(code), {}).get(offset)
            if test is not None and destination not in test[1]:
                hit.add(test[0])

        monitoring.use_tool_id(_TOOL, "tilewright")
        monitoring.register_callback(_TOOL, events.INSTRUCTION, instruction)
        monitoring.register_callback(_TOOL, events.BRANCH, branch)
        for code in self._codes:
            monitoring.set_local_events(_TOOL, code, events.INSTRUCTION | events.BRANCH)
        try:
            yield
        finally:
            for code in self._codes:
                monitoring.set_local_events(_TOOL, code, 0)
            monitoring.register_callback(_TOOL, events.INSTRUCTION, None)
            monitoring.register_callback(_TOOL, events.BRANCH, None)
            monitoring.free_tool_id(_TOOL)


def _within(place: Place, around: Place) -> bool:
    return around[:2] <= place[:2] and place[2:] <= around[2:]


def _place(first: ast.AST, last: ast.AST) -> Place:
    """From the start of a node to the end of one behind it."""
    return (first.lineno, first.col_offset, last.end_lineno, last.end_col_offset)  # type: ignore[attr-defined]
