#!/usr/bin/env python3
"""Runs the offline teacher over problems and verifies what it writes: a table, with the reason for each failure.

    scripts/teach_table.py problems examples/modules --binary target/release/tilewright
    scripts/teach_table.py examples/modules --target cuda:0 --baseline eager --baseline compile --json out.json
    scripts/teach_table.py problems --profile tilewright-1 --profile kernelbench --resume out.json --json out.json

A folder stands for every problem file under it: `problem.py`, or any file that defines `Model`. One service
(`verify --batch -`) gives all verdicts. With `--target cuda:N` accepted candidates are timed, with speedups. The exit
status is 0 if every problem was accepted.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import math
import os
import pathlib
import queue
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parent.parent


def problems(paths: list[str]) -> list[pathlib.Path]:
    """The problem files that the arguments name."""
    found = []
    for text in paths:
        path = pathlib.Path(text)
        files = [path] if path.is_file() else sorted(path.rglob("*.py"))
        found += [f for f in files if f.is_file() and f.name != "candidate.py" and "class Model(" in f.read_text()]
    return found


def name_of(path: pathlib.Path) -> str:
    return path.parent.name if path.name == "problem.py" else f"{path.parent.name}/{path.stem}"


def write_one(path: pathlib.Path, folder: pathlib.Path, variants: list[str]) -> dict[str, dict[str, Any]]:
    """Lets the teacher write candidates for one problem: rows of the table."""
    import torch
    from tilewright.cell.oracle_problem import ProblemError
    from tilewright.teacher.teach import teach

    torch.set_num_threads(1)
    started = time.monotonic()
    try:
        found, notes = teach(str(path), most=64 if variants != ["default"] else 1)
    except ProblemError as error:
        found, notes = [], [str(error)]
    except Exception as error:
        found, notes = [], [f"the teacher failed: {type(error).__name__}: {error}"]
    seconds = time.monotonic() - started
    rows: dict[str, dict[str, Any]] = {}
    for taught in found:
        if taught.variant not in variants and variants != ["all"]:
            continue
        name = name_of(path) + ("" if taught.variant == "default" else f" [{taught.variant}]")
        file = folder / (name.replace("/", "__").replace(" ", "_") + ".py")
        file.write_text(taught.source)
        rows[name] = {"problem": str(path), "candidate": str(file), "seconds": seconds}
    return rows or {name_of(path): {"verdict": "not written", "why": "; ".join(notes)[:300], "seconds": seconds}}


class Service:
    """Verdicts from one `verify --batch -`: requests in, rows filled in as answers come."""

    def __init__(self, options: argparse.Namespace) -> None:
        command = [options.binary, "verify", "--batch", "-", "--target", options.target, "--jobs", str(options.jobs)]
        if options.untimed:
            command.append("--untimed")
        for baseline in options.baseline:
            command += ["--baseline", baseline]
        for profile in options.profile:
            command += ["--profile", profile]
        environment = dict(os.environ)
        environment.setdefault("TILEWRIGHT_PYTHON", sys.executable)
        self.log = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True, env=environment
        )
        self.answers: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self.requests: queue.Queue[dict[str, Any] | None] = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()
        threading.Thread(target=self.write, daemon=True).start()

    def read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.answers.put(json.loads(line))
        self.answers.put(None)

    def write(self) -> None:
        """The service takes a request when it has a hand free, so this waits apart from everything else."""
        assert self.process.stdin is not None
        while (request := self.requests.get()) is not None:
            try:
                self.process.stdin.write(json.dumps(request) + "\n")
                self.process.stdin.flush()
            except OSError:
                return
        self.process.stdin.close()

    def end(self) -> str:
        """Stops the service; the end of what it said on stderr."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.log.seek(0)
        return self.log.read()[-2000:]


def judge(row: dict[str, Any], answer: dict[str, Any]) -> None:
    """Puts an answer of the service into a row."""
    verdict = answer.get("verdict")
    if not isinstance(verdict, dict):
        row |= {"verdict": "no verdict", "why": str(answer.get("error"))[:300]}
        return
    row["verdict"] = verdict.get("verdict")
    row["verify_seconds"] = answer.get("seconds")
    row["profiles"] = {name: bool(found.get("pass")) for name, found in (verdict.get("profiles") or {}).items()}
    if row["verdict"] != "accepted":
        row["why"] = reasons(verdict)
    row["timing"] = verdict.get("timing")
    row["speedup"] = speedups(verdict)


def reasons(verdict: dict[str, Any]) -> str:
    """What a verdict that is not `accepted` says, in short."""
    return " | ".join(reason["message"] for reason in verdict["reasons"])[:400]


def speedups(verdict: dict[str, Any]) -> dict[str, float]:
    """Speedup against each baseline, where it was timed."""
    baselines = (verdict.get("timing") or {}).get("baselines", [])
    return {found["baseline"]: found["speedup"]["value"] for found in baselines}


def passes(row: dict[str, Any], profile: str) -> bool:
    """Whether a candidate is right in everything but precision, and precise enough for a profile."""
    return row.get("verdict") in ("accepted", "incorrect") and bool((row.get("profiles") or {}).get(profile))


def show(rows: dict[str, dict[str, Any]]) -> None:
    """The table on stdout, failures last."""
    for name, row in sorted(rows.items(), key=lambda item: (item[1].get("verdict") != "accepted", item[0])):
        speed = " ".join(f"{k} {v:.2f}x" for k, v in (row.get("speedup") or {}).items())
        short = [p for p, good in (row.get("profiles") or {}).items() if not good]
        missed = f"  not {', '.join(short)}" if short else ""
        print(f"{row.get('verdict', '?'):<14} {name:<52} {speed}{missed}{'  ' + row['why'] if row.get('why') else ''}")
    accepted = [r for r in rows.values() if r.get("verdict") == "accepted"]
    run = [r for r in rows.values() if r.get("verdict") != "not run"]
    print(f"\n{len(accepted)} of {len(run)} accepted" + (f", {len(rows) - len(run)} not run" * (len(run) < len(rows))))
    for profile in dict.fromkeys(p for r in rows.values() for p in r.get("profiles") or {}):
        print(f"{sum(passes(r, profile) for r in run)} of {len(run)} under {profile}")
    kinds = {k for r in accepted for k in r.get("speedup") or {}}
    for kind in sorted(kinds):
        logs = [math.log(r["speedup"][kind]) for r in accepted if kind in (r.get("speedup") or {})]
        print(
            f"geometric mean of the speedup against {kind}: {math.exp(sum(logs) / len(logs)):.3f} ({len(logs)} timed)"
        )


def verify_all(todo: list[pathlib.Path], options: argparse.Namespace, rows: dict[str, dict[str, Any]]) -> str:
    """Writes and verifies; fills `rows`. Gives what the service said on stderr."""
    folder = pathlib.Path(options.keep or tempfile.mkdtemp(prefix="teach-")).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + options.seconds
    service = Service(options)
    waiting: set[str] = set()

    def take(timeout: float) -> bool:
        """One answer, if there is one in time."""
        try:
            answer = service.answers.get(timeout=max(timeout, 0.001))
        except queue.Empty:
            return False
        if answer is None:
            return False
        judge(rows[answer["id"]], answer)
        waiting.discard(answer["id"])
        keep(rows, options)
        print(f"\r{len(rows) - len(waiting)} of {len(todo)}", end="", file=sys.stderr, flush=True)
        return True

    with concurrent.futures.ProcessPoolExecutor(min(options.jobs, os.cpu_count() or 1)) as pool:
        writing = [pool.submit(write_one, path, folder, options.variant or ["default"]) for path in todo]
        for path, future in zip(todo, writing, strict=True):
            try:
                made = future.result(timeout=max(until - time.monotonic(), 0.001))
            except concurrent.futures.TimeoutError:
                made = {name_of(path): {"verdict": "not run", "why": "out of time"}}
                future.cancel()
            rows |= made
            for name, row in made.items():
                if "candidate" in row:
                    waiting.add(name)
                    files = {k: str(pathlib.Path(row[k]).absolute()) for k in ("problem", "candidate")}
                    service.requests.put({"id": name, **files})
            while take(0.0):  # kept as they come: a run that is killed goes on from there
                pass
        service.requests.put(None)
        while waiting and time.monotonic() < until:
            if not take(min(1.0, until - time.monotonic())) and service.process.poll() is not None:
                break
        for name in waiting:
            rows[name] |= {"verdict": "not run", "why": "out of time"}
        for process in list((pool._processes or {}).values()):
            process.terminate()
    said = service.end()
    keep(rows, options)
    return said


def keep(rows: dict[str, dict[str, Any]], options: argparse.Namespace) -> None:
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(rows, indent=1))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", help="problem files and folders")
    parser.add_argument("--binary", default=os.environ.get("BINARY", str(ROOT / "target/release/tilewright")))
    parser.add_argument("--target", default="cpu", help="as for `tilewright verify`")
    parser.add_argument("--baseline", action="append", default=[], help="eager, compile, max-autotune; on a GPU only")
    parser.add_argument("--profile", action="append", default=[], help="repeat for several, the first one decides")
    parser.add_argument("--variant", action="append", default=[], help="names of variants, or all [default: default]")
    parser.add_argument("--jobs", type=int, default=2, help="written, and verified, at the same time")
    parser.add_argument("--untimed", action="store_true", help="time nothing")
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after this time")
    parser.add_argument("--keep", help="keep the candidates in this folder")
    parser.add_argument("--resume", help="leave out what this file has as accepted")
    parser.add_argument("--json", help="write the rows to this file")
    options = parser.parse_args()
    rows: dict[str, dict[str, Any]] = {}
    if options.resume and pathlib.Path(options.resume).exists():
        before = json.loads(pathlib.Path(options.resume).read_text())
        rows = {name: row for name, row in before.items() if row.get("verdict") == "accepted"}
    todo = [path for path in problems(options.paths) if name_of(path) not in rows]
    said = verify_all(todo, options, rows)
    print(file=sys.stderr)
    show(rows)
    if any(row.get("verdict") in ("no verdict", "infrastructure") for row in rows.values()):
        print(f"the service said: {said}", file=sys.stderr)
    return 0 if all(row.get("verdict") == "accepted" for row in rows.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
