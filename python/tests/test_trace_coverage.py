"""Which open calls a trace ran: by bytecode position, against what the calls themselves report."""

from __future__ import annotations

import ast
import textwrap
import types
from typing import Any

import pytest
from tilewright.cell.trace_coverage import Coverage
from trace_bench import HEAD, X
from trace_helper import signature_of, traced


def places(source: str) -> list[dict[str, Any]]:
    """Every call and every operator of a file, as the screen would list them."""
    kinds = (ast.Call, ast.BinOp, ast.UnaryOp, ast.Subscript)
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, kinds)]
    return [
        {
            "line": node.lineno,
            "column": node.col_offset,
            "end_line": node.end_lineno,
            "end_column": node.end_col_offset,
            "text": ast.unparse(node),
        }
        for node in nodes
    ]


def ran(source: str, *args: Any) -> set[str]:
    """Texts of the calls and operators that ran in the import of a file and in its `f(*args)`."""
    source = textwrap.dedent(source)
    calls = places(source)
    code = compile(source, "candidate.py", "exec")
    coverage = Coverage(code, ast.parse(source), calls)
    namespace: dict[str, Any] = {}
    with coverage.watching():
        exec(code, namespace)
        namespace["f"](*args)
    return {calls[index]["text"] for index in coverage.ran()}


def test_arms_of_one_line():
    body = """
    def f(a):
        b = abs(a) if a else min(a, 1)
        c = a and max(a, 2)
        d = a or max(a, 3)
        return -a if a > 5 else +a
    """
    assert ran(body, 1) == {"abs(a)", "max(a, 2)", "+a"}
    assert ran(body, 0) == {"min(a, 1)", "max(a, 3)", "+a"}


def test_chains_over_lines_comprehensions_closures_and_exceptions():
    body = """
    class Y:
        def m(self, *a, **k):
            return self
        def __matmul__(self, other):
            return self
        def __getitem__(self, i):
            return self

    def f(n):
        y = (Y()
             .m(1)
             .m(*[2], **{}))
        z = [abs(i) for i in range(n)]
        g = lambda v: v @ v
        try:
            int("x")
            y.m(3)
        except ValueError:
            y[n]
        finally:
            y.m(4)
        return g(y) if n else len(z)
    """
    found = ran(body, 0)
    assert {"Y()", "Y().m(1)", "Y().m(1).m(*[2], **{})", "range(n)", "int('x')", "y[n]", "y.m(4)", "len(z)"} <= found
    assert not found & {"abs(i)", "y.m(3)", "g(y)"}
    assert {"abs(i)", "v @ v", "g(y)"} <= ran(body, 2)


def test_an_operator_and_the_call_that_ends_it_are_told_apart():
    body = """
    class Y:
        def __rmatmul__(self, other):
            raise KeyError
    def f():
        try:
            return 1 + (2 @ Y())
        except KeyError:
            pass
    """
    assert ran(body) == {"Y()", "2 @ Y()"}


def test_code_that_a_file_makes_itself_counts_for_nothing():
    source = "def f(a):\n    return abs(a) if a else min(a, 1)\n"
    calls = places(source)
    code = compile(source, "candidate.py", "exec")
    coverage = Coverage(code, ast.parse(source), calls)
    copied = compile(source, "candidate.py", "exec")
    inner = next(c for c in copied.co_consts if isinstance(c, types.CodeType))
    with coverage.watching():
        exec(copied, namespace := {})
        namespace["f"](1)
        types.FunctionType(inner.replace(co_name="g"), {})(0)
    assert coverage.ran() == []


BRANCHES = """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def forward(self, x):
        if x.dim() == 7:
            return torch.relu(x)
        return self.first(x)

    def first(self, x):
        return run(x)
"""


@pytest.mark.parametrize("text", ["torch.relu(x)", "self.first(x)", "nn.Linear(2, 2)"])
def test_a_trace_says_which_calls_ran(text: str):
    source = HEAD + BRANCHES
    calls = places(source)
    response = traced(source, signature_of([X]), calls=calls)
    assert "plans" in response, response
    assert (text in {calls[index]["text"] for index in response["ran"]}) == (text != "torch.relu(x)")


def ways(source: str, test: str, *args: Any) -> set[str]:
    """Which ways of the `if` with this test `f(*args)` went: its body, past it."""
    source = textwrap.dedent(source)
    tree = ast.parse(source)
    node = next(node for node in ast.walk(tree) if isinstance(node, ast.If) and ast.unparse(node.test) == test)
    body = ast.copy_location(ast.Expr(), node.body[0])
    body.end_lineno, body.end_col_offset = node.body[-1].end_lineno, node.body[-1].end_col_offset
    places = [("branch", body), ("otherwise", node.test)]
    calls = [
        {"line": n.lineno, "column": n.col_offset, "end_line": n.end_lineno, "end_column": n.end_col_offset, "what": w}
        for w, n in places
    ]
    code = compile(source, "candidate.py", "exec")
    coverage = Coverage(code, tree, calls)
    namespace: dict[str, Any] = {}
    with coverage.watching():
        exec(code, namespace)
        namespace["f"](*args)
    return {places[index][0] for index in coverage.ran()}


def test_ways_of_an_if_without_else():
    early = """
    def f(a, b):
        if a and b > 1:
            return 1
        return 2
    """
    assert ways(early, "a and b > 1", 1, 2) == {"branch"}
    assert ways(early, "a and b > 1", 0, 2) == {"otherwise"}
    assert ways(early, "a and b > 1", 1, 0) == {"otherwise"}
    nested = """
    def f(a, b):
        for i in range(2):
            if a == i:
                if b:
                    c = 1
        try:
            if a.missing:
                c = 3
        except AttributeError:
            c = 4
        return a
    """
    assert ways(nested, "a == i", 7, 0) == {"otherwise"}
    assert ways(nested, "a == i", 1, 0) == {"branch", "otherwise"}
    assert ways(nested, "b", 1, 0) == {"otherwise"}
    assert ways(nested, "b", 7, 0) == set()
    assert ways(nested, "a.missing", 1, 0) == set()
