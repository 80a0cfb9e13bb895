"""Kernels for PyTorch modules, from Python: what `tilewright generate` and `tilewright ask` do, as functions.

    import tilewright

    # The best accepted file; no model, no key, no GPU needed.
    print(tilewright.generate_triton(open("softmax.py").read()))
    for event in tilewright.stream(code, author="big", n=8):  # as it happens
        ...
    print(tilewright.generate_raw("Write a haiku about warps.", author="big"))  # a question as it stands

`KernelLLM` has the methods of the class of the same name that comes with facebook/KernelLLM.

The work is done by the `tilewright` program: the one that `TILEWRIGHT_BINARY` names, else the one on the path, else the
one that this source tree has built.
"""

from __future__ import annotations

import codecs
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["GenerationError", "KernelLLM", "generate_raw", "generate_triton", "stream", "stream_raw"]

_COMPLAINTS = ("tilewright: ", "error: ")
"""How the program begins a line that says what is wrong: of its own, and of its command line."""

_TREE = Path(__file__).resolve().parents[2]


class GenerationError(RuntimeError):
    """There is no accepted kernel, or no answer.

    `report` is the run's report with every candidate and its verdict, where it came so far; `exit_code` is the
    program's: 1 no candidate accepted, 2 a wrong argument, 3 the author, the problem or the machine is in the way.
    """

    def __init__(self, message: str, exit_code: int, report: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.report = report


def generate_triton(code: str, author: str = "offline", **options: Any) -> str:
    """The best accepted Triton file for a module.

    `code` is a file in KernelBench format: `Model`, `get_inputs`, `get_init_inputs`. `options` are those of
    `tilewright generate`, spelled as Python does: `n=8`, `rounds=3`, `target="cuda:0"`, `until="1.5x"`,
    `max_tokens=100_000`, `temperature=0.6`, `answer_tokens=2048`, `profile=["kernelbench"]`, `untimed=True`.

    Raises GenerationError where no candidate is accepted.
    """
    report: dict[str, Any] = {}
    for event in stream(code, author, **options):
        report = event
    source = report.get("source")
    if source is None:
        raise GenerationError(_why(report["report"]), 1, report["report"])
    return source


def stream(code: str, author: str = "offline", **options: Any) -> Iterator[dict[str, Any]]:
    """What happens while a kernel is written, event by event, each a dict with its name under `event`.

    `round`, `asking`, `reading`, `text` and `thought` (pieces of an answer), `again`, `answer`, `stage`, `failed`,
    `verdict`, and at the end `report` with the best accepted file under `source`, or None there. Arguments are those of
    `generate_triton`.

    Raises GenerationError where the run cannot begin or is kept from its end.
    """
    with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
        problem = Path(folder) / "module.py"
        problem.write_text(code, encoding="utf-8")
        options.setdefault("out", str(Path(folder) / "run"))
        last: dict[str, Any] = {}
        with _Program(["generate", str(problem), "--author", author, "--events", *_arguments(options)]) as program:
            for line in program.lines():
                last = json.loads(line)
                yield last
            exit_code, said = program.end()
        if last.get("event") != "report":
            raise GenerationError(said or "the program ended without a report", exit_code)
        if exit_code == 3:
            raise GenerationError(_why(last["report"]), 3, last["report"])


def generate_raw(prompt: str, author: str, **options: Any) -> str:
    """What a language model says to a prompt as it stands.

    `options`: `temperature`, `top_p`, `answer_tokens`, `seed`, `config`.
    """
    return "".join(stream_raw(prompt, author, **options))


def stream_raw(prompt: str, author: str, **options: Any) -> Iterator[str]:
    """The same, piece by piece."""
    with _Program(["ask", "--author", author, *_arguments(options)], prompt) as program:
        yield from program.pieces()
        code, said = program.end()
    if code != 0:
        raise GenerationError(said or "no answer", code)


class KernelLLM:
    """The interface of facebook/KernelLLM, with any author behind it.

    `model_name` is an author: a name in tilewright.toml, or `offline`, which answers no raw prompts. Kernels that it
    returns have been verified.
    """

    def __init__(self, model_name: str = "offline", device: str | None = None) -> None:
        self.author = model_name
        self.target = "cpu" if device in (None, "cpu") else device if ":" in device else f"{device}:0"

    def generate_triton(self, code: str, temperature: float = 0.6, max_new_tokens: int = 2048, **options: Any) -> str:
        """The best accepted Triton file for a module; see `tilewright.generate_triton`."""
        settings = {"target": self.target, "temperature": temperature, "answer_tokens": max_new_tokens, **options}
        return generate_triton(code, self.author, **settings)

    def generate_raw(self, prompt: str, temperature: float = 0.6, max_new_tokens: int = 2048) -> str:
        """What the model says to a prompt as it stands."""
        return generate_raw(prompt, self.author, temperature=temperature, answer_tokens=max_new_tokens)

    def stream_raw(self, prompt: str, max_new_tokens: int = 2048) -> None:
        """Prints what the model says to a prompt, as it says it."""
        for piece in stream_raw(prompt, self.author, answer_tokens=max_new_tokens):
            print(piece, end="", flush=True)
        print()

    def run_repl(self) -> int:
        """A conversation at the terminal, about the modules that the user gives; its exit status."""
        return subprocess.run(
            [_binary(), "repl", "--author", self.author, "--target", self.target], check=False
        ).returncode


def _why(report: dict[str, Any]) -> str:
    stop = report["stop"]
    if stop.get("cause"):
        return str(stop["cause"])
    rows = report["candidates"]
    reasons = [f"{row['variant']}: {row['verdict'] or 'no code'}: {row['why']}" for row in rows if row["why"]]
    return "no candidate is accepted: " + ("; ".join(reasons[:3]) or "there is none")


def _binary() -> str:
    asked = os.environ.get("TILEWRIGHT_BINARY")
    if asked:
        if shutil.which(asked) is None:
            raise FileNotFoundError(f"TILEWRIGHT_BINARY names {asked}, which is no program")
        return asked
    built = [_TREE / "target" / kind / "tilewright" for kind in ("release", "debug")]
    found = shutil.which("tilewright") or next((str(path) for path in built if path.is_file()), None)
    if found is None:
        raise FileNotFoundError("no `tilewright` program: build it by `make build`, or name one by TILEWRIGHT_BINARY")
    return found


def _arguments(options: dict[str, Any]) -> list[str]:
    """Options as the command line spells them: a list repeats its option, True is a flag, None and False leave it out.

    An underscore at the end is dropped: `for_` is `--for`.
    """
    out: list[str] = []
    for name, value in options.items():
        flag = f"--{name.rstrip('_').replace('_', '-')}"
        for one in value if isinstance(value, list | tuple) else [value]:
            if one is True:
                out.append(flag)
            elif one is not None and one is not False:
                out.append(f"{flag}={one}")
    return out


class _Program:
    """A program that runs until its output is read; whoever stops reading ends it."""

    def __init__(self, arguments: list[str], question: str = "") -> None:
        environment = dict(os.environ)
        environment.setdefault("TILEWRIGHT_PYTHON", sys.executable)
        self._talk = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            [_binary(), *arguments], stdin=pipe, stdout=pipe, stderr=self._talk, encoding="utf-8", env=environment
        )
        assert self._process.stdin is not None
        # A program that has refused its arguments reads nothing.
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(question)
            self._process.stdin.close()

    def __enter__(self) -> _Program:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._talk.close()

    def lines(self) -> Iterator[str]:
        """Standard output, line by line."""
        assert self._process.stdout is not None
        yield from self._process.stdout

    def pieces(self) -> Iterator[str]:
        """Standard output as it comes."""
        assert self._process.stdout is not None
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        raw = self._process.stdout.buffer
        while data := raw.read1(65536):
            yield decoder.decode(data)

    def end(self) -> tuple[int, str]:
        """Exit status, and the last complaint, or else the last line that was said."""
        code = self._process.wait()
        self._talk.seek(0)
        said = [line for line in self._talk.read().splitlines() if line.strip()]
        complaints = [line for line in said if line.startswith(_COMPLAINTS)]
        last = (complaints or said or [""])[-1]
        return code, next((last.removeprefix(p) for p in _COMPLAINTS if last.startswith(p)), last)
