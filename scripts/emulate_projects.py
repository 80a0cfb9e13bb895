#!/usr/bin/env python3
"""Run the published tests of Triton projects in the emulator, and say what became of them.

    scripts/emulate_projects.py [--work DIR] [--each N] [--seconds S] [--budget S] [--memory GIB] [PROJECT…]

A project is a file requirements/projects/NAME.txt, which pins it (first) and what its tests need, and says where they
are (`# tests:`, patterns) and what they import from besides the project's root (`# path:`). The source distribution and
those packages come from the registry that pip is configured for; torch and Triton are those of .venv.
Of each test function at most N parametrisations run, evenly chosen, each for S seconds at most; --budget bounds the
whole project, and tests that it leaves no time for do not count. One JSON line for each test goes to DIR/NAME.jsonl; a
summary in Markdown to stdout.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import resource
import subprocess
import sys
import tarfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "python"
PYTHON = ROOT / ".venv" / "bin" / "python"
REQUIREMENTS = ROOT / "requirements" / "projects"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = sorted(file.stem for file in REQUIREMENTS.glob("*.txt"))
    parser.add_argument("projects", nargs="*", metavar="PROJECT", help=f"one of {', '.join(names)} (default: all)")
    parser.add_argument("--work", type=Path, default=ROOT / "target" / "projects", help="folder for everything")
    parser.add_argument("--each", type=int, default=4, help="parametrisations of a test function that run")
    parser.add_argument("--seconds", type=int, default=30, help="for one test")
    parser.add_argument("--budget", type=int, default=3600, help="seconds for one project")
    parser.add_argument("--memory", type=int, default=20, help="GiB of address space that a test process may take")
    parser.add_argument("--files", default="", help="only test files whose path matches this regular expression")
    parser.add_argument("--resume", action="store_true", help="run what an earlier run had no time for")
    parser.add_argument("--summary", action="store_true", help="run nothing, summarise what is there")
    arguments = parser.parse_args()
    summaries = []
    for name in arguments.projects or names:
        if name not in names:
            parser.error(f"there is no requirements/projects/{name}.txt")
        log = arguments.work / f"{name}.jsonl"
        if not arguments.summary:
            run_project(Project(name, arguments.work, arguments.memory << 30), log, arguments)
        summaries.append(summarise(name, [json.loads(line) for line in log.read_text().splitlines()]))
    print("\n".join(table(summaries)))


class Project:
    """A published project, installed where its tests can run."""

    def __init__(self, name: str, work: Path, memory: int) -> None:
        self.memory = memory
        self.file = REQUIREMENTS / f"{name}.txt"
        pins = re.findall(r"^([\w.-]+)==(\S+)$", self.file.read_text(), re.MULTILINE)
        self.package, self.version = pins[0]
        self.tests = re.findall(r"^# tests: (.*)$", self.file.read_text(), re.MULTILINE)[0].split()
        self.paths = re.findall(r"^# path: (.*)$", self.file.read_text(), re.MULTILINE)
        self.venv = work / f"venv-{name}"
        self.python = self.venv / "bin" / "python"
        self._install()
        self.folder = self._unpack(work)

    def _install(self) -> None:
        done = self.venv / "installed"
        if done.exists() and done.read_text() == self.file.read_text():
            return
        say(f"installing what {self.package} needs")
        subprocess.run([PYTHON, "-m", "venv", "--clear", "--without-pip", self.venv], check=True)
        site = next(self.venv.glob("lib/python*/site-packages"))
        (site / "base.pth").write_text("".join(f"{folder}\n" for folder in base()))
        rest = [line for line in self.file.read_text().splitlines() if not line.startswith((f"{self.package}==", "#"))]
        (self.venv / "needs.txt").write_text("\n".join(rest))
        self._pip("install", "--no-deps", "-r", str(self.venv / "needs.txt"))
        done.write_text(self.file.read_text())

    def _unpack(self, work: Path) -> Path:
        stem = f"{self.package.replace('-', '_')}-{self.version}"
        if not (work / stem).exists():
            say(f"fetching {self.package} {self.version}")
            pin = f"{self.package}=={self.version}"
            self._pip("download", "--no-deps", "--no-build-isolation", "--no-binary", ":all:", "-d", str(work), pin)
            with tarfile.open(work / f"{stem}.tar.gz") as archive:
                archive.extractall(work, filter="data")
        return work / stem

    def _pip(self, *command: str) -> None:
        pip = [self.python, "-m", "pip", "--disable-pip-version-check", "-q", *command]
        subprocess.run(pip, check=True, stdout=sys.stderr)

    def pytest(self, *command: str | Path, output: Path, alive: Callable[[], bool]) -> None:
        """Runs pytest, its output into a file, for as long as `alive` says so."""
        plain = ["-p", "no:cacheprovider", "-o", "log_cli=false", "-o", "addopts=", "-W", "ignore", "--triton-emulate"]
        paths = os.pathsep.join(str(self.folder / name) for name in (".", *self.paths))
        environment = {**os.environ, "PYTHONPATH": paths, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
        full = [self.python, "-m", "pytest", "-q", *plain, *command]
        with output.open("w") as file:
            streams = {"stdin": subprocess.DEVNULL, "stdout": file, "stderr": subprocess.STDOUT}
            limits = partial(limit, self.memory)
            process = subprocess.Popen(full, cwd=self.folder, env=environment, preexec_fn=limits, **streams)
            while process.poll() is None:
                if not alive():
                    process.kill()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(10)


def base() -> list[str]:
    """Where .venv's Python finds packages: torch, Triton, pip and Tilewright's own."""
    code = "import sys; print(*filter(None, sys.path), sep=chr(10))"
    found = subprocess.run([PYTHON, "-I", "-c", code], check=True, capture_output=True, text=True).stdout.split("\n")
    return [
        folder for folder in found if folder.endswith(("site-packages", "dist-packages")) or Path(folder) == SOURCES
    ]


def limit(memory: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


def run_project(project: Project, log: Path, arguments: argparse.Namespace) -> None:
    """Runs the chosen tests in one process, and in another from where that one dies or hangs."""
    earlier = log.read_text().splitlines() if arguments.resume and log.exists() else []
    earlier = [
        line for line in earlier if json.loads(line).get("outcome", "no time") not in ("no time", "not collected")
    ]
    log.write_text("".join(f"{line}\n" for line in earlier))
    end = time.monotonic() + arguments.budget
    paths = [file.relative_to(project.folder) for folder in project.tests for file in project.folder.glob(folder)]
    paths = sorted(path for path in paths if re.search(arguments.files, str(path)))
    output = log.with_suffix(".log")
    project.pytest("--collect-only", *paths, output=output, alive=lambda: time.monotonic() < end)
    tests = re.findall(r"^\S+::.*$", output.read_text(), re.MULTILINE)
    for path, why in re.findall(r"^ERROR (\S+\.py)(?: - (.*))?$", output.read_text(), re.MULTILINE):
        note(log, {"test": f"{path}::", "outcome": "not collected", "why": why})
    left = choose(tests, arguments.each)
    note(log, {"all": len(tests), "chosen": len(left)})
    done = {json.loads(line).get("test") for line in earlier}
    left = [test for test in left if test not in done]
    while left and time.monotonic() < end:
        say(f"{project.package}: {len(left)} of {len(tests)} tests left, {end - time.monotonic():.0f} s")
        run_tests(project, left, log, arguments.seconds, end)
        done = {json.loads(line).get("test") for line in log.read_text().splitlines()}
        left = [test for test in left if test not in done]
        if left and time.monotonic() < end:
            note(log, {"test": left.pop(0), "outcome": "not run", "why": "the process died or hung"})
    for test in left:
        note(log, {"test": test, "outcome": "no time", "why": "the project's time was over"})


def run_tests(project: Project, tests: list[str], log: Path, seconds: int, end: float) -> None:
    names = log.with_suffix(".tests").absolute()
    names.write_text("\n".join(tests))

    def alive() -> bool:
        return time.monotonic() < end and time.time() - max(log.stat().st_mtime, start) < 60 + 3 * seconds

    start = time.time()
    limits = [f"--timeout={seconds}", f"--triton-emulate-timeout={seconds}"]
    report = ["--triton-emulate-report", log.absolute()]
    project.pytest(*limits, *report, f"@{names}", output=log.with_suffix(".log"), alive=alive)


def choose(tests: list[str], each: int) -> list[str]:
    """At most `each` parametrisations of a test function, evenly spread."""
    groups: dict[str, list[str]] = defaultdict(list)
    for test in tests:
        groups[test.split("[")[0]].append(test)
    return [
        group[index * len(group) // min(each, len(group))]
        for group in groups.values()
        for index in range(min(each, len(group)))
    ]


def note(log: Path, line: dict[str, object]) -> None:
    with log.open("a") as file:
        file.write(json.dumps(line) + "\n")


def reason(test: dict) -> str:
    """Why a test did not pass, in a few words."""
    if test.get("unsupported"):
        return f"unsupported: {test['unsupported'][0]['operation']}: {test['unsupported'][0]['why'][:80]}"
    if test.get("faults"):
        return f"finding: {test['faults'][0]['kind']} in {test['faults'][0]['kernel']}"
    why = test["why"] or ""
    if re.search(r"^Failed: Timeout|kind='timeout'|deadline passed", why) or test["outcome"] == "not run":
        return "too slow"
    if why.startswith("AssertionError") and "close" in why:
        return "differs: " + (re.findall(r"Mismatched elements: .*|Greatest.*", why) or [why[:80]])[0]
    return "error: " + why.splitlines()[0][:150] if why else "error"


def summarise(name: str, lines: list[dict]) -> dict:
    tests = [line for line in lines if "test" in line and line["outcome"] != "no time"]
    counts: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    for test in tests:
        outcome = test["outcome"]
        if outcome in ("passed", "xfailed", "xpassed", "xskipped"):
            counts["right" if test.get("launches") else "passed without a launch"] += 1
            continue
        why = f"skipped: {test['why'][:120]}" if outcome == "skipped" else reason(test)
        counts[why.split(":")[0]] += 1
        reasons[why] += 1
    return {
        "project": name,
        "all": sum(line.get("all", 0) for line in lines),
        "chosen": len(tests),
        "launched": sum(bool(test.get("launches")) for test in tests),
        "kernels": len({kernel for test in tests for kernel in test.get("launches") or ()}),
        "launches": sum(sum((test.get("launches") or {}).values()) for test in tests),
        "counts": counts,
        "reasons": reasons,
    }


def table(summaries: list[dict]) -> list[str]:
    kinds = ("right", "differs", "finding", "unsupported", "too slow", "error", "passed without a launch", "skipped")
    lines = [
        f"| project | tests, run | kernels, launches | {' | '.join(kinds)} |",
        "|---" * (len(kinds) + 3) + "|",
    ]
    for it in summaries:
        cells = [str(it["counts"][kind]) for kind in kinds]
        first = f"{it['project']} | {it['all']}, {it['chosen']} | {it['kernels']}, {it['launches']}"
        lines.append(f"| {first} | {' | '.join(cells)} |")
    for it in summaries:
        lines += ["", f"{it['project']}: why not"]
        lines += [f"- {times} x {why}" for why, times in it["reasons"].most_common()]
    return lines


def say(text: str) -> None:
    print(f"projects: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
