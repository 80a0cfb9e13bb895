"""Where the time goes before the first verdict: the start of a service, and the loading of problems. Prints Markdown.

    python3 scripts/gpu/loading.py BINARY [--target cuda:0] [--kinds softmax,linear_gelu] [--small] [--side 1 4]

Three tables: how long a service takes that is asked nothing, twice (the second finds files in the system's memory);
what the first process of the Python side imports and warms; and what a process that holds a problem's data does, by
itself and several at a time, each forked from a process that has imported torch but never touched the GPU.
"""

from __future__ import annotations

import argparse
import contextlib
import cProfile
import importlib
import io
import multiprocessing
import os
import pstats
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import candidates


class Clock:
    """Seconds of steps, in order."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, float, float]] = []

    @contextlib.contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Count what the body takes: by the clock, and of the processor."""
        start, used = time.monotonic(), time.process_time()
        yield
        self.steps.append((name, time.monotonic() - start, time.process_time() - used))


def service_start(binary: str, target: str) -> None:
    """A service that is asked nothing."""
    print("| service without requests | seconds |\n|---|---|")
    for name in ("first", "again"):
        command = [binary, "verify", "--batch", "-"] + ([] if target == "cpu" else ["--target", target])
        start = time.monotonic()
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        print(f"| {name} | {time.monotonic() - start:.2f} |{done.stderr[-300:]}", flush=True)


def imports() -> Clock:
    """What the first process of the Python side does before it takes jobs."""
    clock = Clock()
    with clock.step("import torch"):
        import torch
    torch.set_num_threads(1)
    with clock.step("import triton"):
        import triton  # noqa: F401
    from tilewright.cell import zygote

    handlers = []
    with clock.step("import handlers"):
        for kind in zygote.KINDS:
            handlers.append(importlib.import_module(f"tilewright.cell.{kind}"))
    for warm in dict.fromkeys(getattr(module, "warm", None) for module in handlers):
        if warm is not None:
            with clock.step(f"{warm.__module__.rpartition('.')[2]}.warm"):
                warm()
    cached = Path(torch.__file__).parent / "__pycache__"
    print(f"\ntorch {torch.__version__}, compiled Python files beside it: {len(list(cached.glob('*.pyc')))}\n")
    return clock


def load_problem(problem: Path, device: str, profile: bool) -> tuple[Clock, str]:
    """What the process that holds a problem's data does, step by step."""
    import torch
    from tilewright.cell import oracle, resident
    from tilewright.cell.baseline import Subject

    clock, profiler = Clock(), cProfile.Profile()
    request: dict[str, Any] = {
        "problem": str(problem), "seed": 1, "trials": 5, "regimes": True, "device": device, "max_bytes": 8 << 30,
        "threads": 4, "state_rule": "random", "init_seed": 0, "init_rule": None,
    }  # fmt: skip
    with clock.step("context of the GPU"):
        torch.empty(1, device=device)
    if device != "cpu":
        with clock.step("cuBLAS"):
            x = torch.empty(64, 64, device=device)
            (x @ x).sum().item()
    store = resident.Store(device)
    with clock.step("the oracle's data"):
        if profile:
            profiler.enable()
        data = oracle.answer(request, oracle.Oracle, store)
        profiler.disable()
    if "error" in data:
        return clock, str(data["error"])
    keeper = resident.Keeper(request, data, store)
    with clock.step("ready to compare"):
        keeper.warm([profile_document()])
    if device != "cpu":
        with clock.step("the reference to be timed"):
            subject = Subject(str(problem), device, data, store)
        with clock.step("its work"):
            subject.work()
        with clock.step("eager as a graph"):
            subject.prepare("eager")
        with clock.step("end to end"):
            from tilewright.cell.host_costs import end_to_end

            end_to_end(subject.direct["eager"])
    text = io.StringIO()
    if profile:
        pstats.Stats(profiler, stream=text).sort_stats("cumulative").print_stats(45)
    return clock, text.getvalue()


def profile_document() -> dict[str, Any]:
    """The profile that verdicts are given under by default."""
    text = (Path(__file__).resolve().parents[2] / "profiles" / "tilewright-1.toml").read_text()
    profile = {"tolerance": {}, **tomllib.loads(text)}
    for tolerance in (profile["default"], *profile["tolerance"].values()):
        for name in ("atol", "small_threshold", "small_error"):
            tolerance.setdefault(name, 0.0)
    return profile


def in_processes(problems: list[Path], device: str, profile: bool) -> list[tuple[str, Clock, str, float]]:
    """Load each in a forked process, all at the same time."""
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    start = time.monotonic()

    def work(problem: Path) -> None:
        try:
            clock, text = load_problem(problem, device, profile)
        except BaseException as error:
            clock, text = Clock(), repr(error)
        answers.put((problem.parent.name, clock, text, time.monotonic() - start))

    processes = [context.Process(target=work, args=(problem,)) for problem in problems]
    for process in processes:
        process.start()
    found = [answers.get() for _ in processes]
    for process in processes:
        process.join()
    return found


def table(title: str, rows: list[tuple[str, Clock, str, float]]) -> None:
    """Steps as columns."""
    names = list(dict.fromkeys(name for _, clock, _, _ in rows for name, _, _ in clock.steps))
    print(f"\n{title}\n\n| problem | all | {' | '.join(names)} |\n|{'---|' * (len(names) + 2)}")
    for problem, clock, _, whole in rows:
        steps = {name: f"{wall:.2f} ({used:.2f})" for name, wall, used in clock.steps}
        print(f"| {problem} | {whole:.2f} | {' | '.join(steps.get(name, '-') for name in names)} |", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("binary")
    parser.add_argument("--target", default="cuda:0")
    parser.add_argument("--kinds", default="softmax,linear_gelu,conv2d_relu,causal_attention_fp16")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--side", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--profile", action="store_true", help="print what the oracle calls")
    options = parser.parse_args()
    service_start(options.binary, options.target)
    clock = imports()
    table("The first process: seconds, and of them the processor's", [("-", clock, "", sum(s[1] for s in clock.steps))])
    kinds = options.kinds.split(",")
    with tempfile.TemporaryDirectory() as folder:
        made = candidates.write(Path(folder), len(kinds), options.small, kinds=kinds)
        problems = [candidate.problem for candidate in made]
        for side in options.side:
            if side == 1:
                rows = [row for problem in problems for row in in_processes([problem], options.target, options.profile)]
            else:
                rows = in_processes((problems * side)[:side], options.target, False)
            table(f"{side} at a time", rows)
            for problem, _, text, _ in rows:
                if text:
                    print(f"\n{problem}\n{text}"[:6000])
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
