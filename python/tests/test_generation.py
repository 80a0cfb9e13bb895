"""Generating from Python, against a program by script in place of `tilewright`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import tilewright
from tilewright.generation import KernelLLM, _arguments

# Writes down how it was called, says what it is told to, and ends as it is told to.
PROGRAM = """#!{python}
import json, pathlib, sys
folder = pathlib.Path({folder!r})
problem = pathlib.Path(sys.argv[2])
module = problem.read_text() if sys.argv[1] == "generate" else None
call = {{"arguments": sys.argv[1:], "module": module, "stdin": sys.stdin.read()}}
(folder / "call.json").write_text(json.dumps(call))
sys.stderr.write("talk\\ntilewright: " + {said!r} + "\\n")
sys.stdout.write({out!r})
sys.exit({code})
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Puts a program in place that prints `out`, complains `said` and ends with `code`; gives how it was called."""

    def put(out: str, code: int = 0, said: str = "no") -> Any:
        path = tmp_path / "tilewright"
        path.write_text(PROGRAM.format(python=sys.executable, folder=str(tmp_path), out=out, code=code, said=said))
        path.chmod(0o755)
        monkeypatch.setenv("TILEWRIGHT_BINARY", str(path))
        return lambda: json.loads((tmp_path / "call.json").read_text())

    return put


def report(source: str | None, **stop: str) -> dict[str, Any]:
    row = {"variant": "default", "verdict": "incorrect", "why": "values differ"}
    return {"event": "report", "source": source, "report": {"stop": stop or {"why": "done"}, "candidates": [row]}}


def lines(*events: dict[str, Any]) -> str:
    return "".join(json.dumps(event) + "\n" for event in events)


def test_the_module_of_the_caller_reaches_the_author(program: Any) -> None:
    called = program(lines({"event": "text", "text": "é"}, report("# kernel")))
    module = "class Model:  # é, mine\n"
    assert tilewright.generate_triton(module, "big", n=3, until="1.5x", profile=["a", "b"], untimed=True) == "# kernel"
    call = called()
    assert call["module"] == module
    assert call["arguments"][2:5] == ["--author", "big", "--events"]
    assert {"--n=3", "--until=1.5x", "--profile=a", "--profile=b", "--untimed"} <= set(call["arguments"])
    assert KernelLLM("big", device="cuda").generate_triton(module) == "# kernel"
    assert {"--target=cuda:0", "--temperature=0.6", "--answer-tokens=2048"} <= set(called()["arguments"])


def test_events_come_one_by_one(program: Any) -> None:
    program(lines({"event": "round"}, {"event": "verdict", "sample": 0}, report("x")))
    assert [event["event"] for event in tilewright.stream("m")] == ["round", "verdict", "report"]


def test_no_kernel_is_an_error_that_says_why(program: Any) -> None:
    for out, code, told in [
        (lines(report(None)), 1, "default: incorrect: values differ"),
        (lines(report(None, why="author", cause="no connection")), 3, "no connection"),
        ("", 2, "^unknown author$"),
    ]:
        program(out, code, said="unknown author\n\nFor more information, try '--help'.")
        with pytest.raises(tilewright.GenerationError, match=told) as error:
            tilewright.generate_triton("m")
        assert error.value.exit_code == code


def test_a_program_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_BINARY", "/nowhere/tilewright")
    with pytest.raises(FileNotFoundError, match="TILEWRIGHT_BINARY names /nowhere/tilewright"):
        tilewright.generate_triton("m")


def test_a_prompt_goes_as_it_stands(program: Any) -> None:
    prompt = "line\n  {not a template} é\n" * 10_000
    called = program("an answer\nof two lines")
    assert tilewright.generate_raw(prompt, "big", temperature=0.1) == "an answer\nof two lines"
    assert called()["stdin"] == prompt
    assert called()["arguments"] == ["ask", "--author", "big", "--temperature=0.1"]
    program("half an ans", 3, said="the answer broke off")
    with pytest.raises(tilewright.GenerationError, match="broke off"):
        tilewright.generate_raw(prompt, "big")


def test_options_are_spelled_as_on_the_command_line() -> None:
    assert _arguments({"for_": "ascend", "max_tokens": 5, "seed": 0, "config": None, "strict": False}) == [
        "--for=ascend",
        "--max-tokens=5",
        "--seed=0",
    ]
