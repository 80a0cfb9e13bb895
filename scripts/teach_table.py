#!/usr/bin/env python3
"""Runs the offline teacher over problems and verifies what it writes: a table, with the reason for each failure.

    scripts/teach_table.py problems examples/modules --binary target/release/tilewright
    scripts/teach_table.py examples/modules --target cuda:0 --baseline eager --baseline compile --json out.json

A folder stands for every problem file under it: `problem.py`, or any file that defines `Model`. With `--target cuda:N`
accepted candidates are timed and the speedups are shown. The exit status is 0 if every problem was accepted.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
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
    from tilewright.cell.oracle_problem import ProblemError
    from tilewright.teacher.teach import teach

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


def row_of(path: pathlib.Path, options: argparse.Namespace, folder: pathlib.Path, until: float) -> dict[str, Any]:
    """Writes and verifies the candidates of one problem."""
    if time.monotonic() > until:
        return {name_of(path): {"verdict": "not run", "why": "out of time"}}
    with concurrent.futures.ProcessPoolExecutor(1) as process:
        rows = process.submit(write_one, path, folder, options.variant or ["default"]).result()
    for row in rows.values():
        if "candidate" in row:
            verify(row, options)
    return rows


def verify(row: dict[str, Any], options: argparse.Namespace) -> None:
    """Asks the binary for a verdict."""
    command = [options.binary, "verify", row["problem"], row["candidate"], "--json", "--target", options.target]
    if options.untimed:
        command.append("--untimed")
    for baseline in options.baseline:
        command += ["--baseline", baseline]
    for profile in options.profile:
        command += ["--profile", profile]
    environment = dict(os.environ)
    environment.setdefault("TILEWRIGHT_PYTHON", sys.executable)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=options.timeout, env=environment)
    except subprocess.TimeoutExpired:
        row |= {"verdict": "timeout", "why": f"no verdict within {options.timeout} s"}
        return
    try:
        verdict = json.loads(done.stdout)
    except ValueError:
        row |= {"verdict": "no verdict", "why": (done.stderr or done.stdout).strip()[-300:]}
        return
    row["verdict"] = verdict.get("verdict")
    row["document"] = verdict
    if row["verdict"] != "accepted":
        row["why"] = reasons(verdict)
    row["speedup"] = speedups(verdict)


def reasons(verdict: dict[str, Any]) -> str:
    """What a verdict that is not `accepted` says, in short."""
    texts = []
    for key in ("reason", "message", "why"):
        if isinstance(verdict.get(key), str):
            texts.append(verdict[key])
    for reason in verdict.get("reasons") or []:
        texts.append(reason if isinstance(reason, str) else reason.get("message") or json.dumps(reason)[:200])
    return " | ".join(texts)[:400] or json.dumps(verdict)[:300]


def speedups(verdict: dict[str, Any]) -> dict[str, float]:
    """Speedup against each baseline, where it was timed."""
    timing = verdict.get("timing") or {}
    found = {}
    for name, figures in (timing.get("baselines") or {}).items():
        value = figures.get("speedup") if isinstance(figures, dict) else None
        if isinstance(value, dict):
            value = value.get("value") or value.get("median")
        if isinstance(value, int | float):
            found[name] = float(value)
    return found


def show(rows: dict[str, dict[str, Any]]) -> None:
    """The table on stdout."""
    for name, row in sorted(rows.items()):
        speed = " ".join(f"{k} {v:.2f}x" for k, v in (row.get("speedup") or {}).items())
        print(f"{row.get('verdict', '?'):<14} {name:<52} {speed}{'  ' + row['why'] if row.get('why') else ''}")
    accepted = [r for r in rows.values() if r.get("verdict") == "accepted"]
    print(f"\n{len(accepted)} of {len(rows)} accepted")
    kinds = {k for r in accepted for k in r.get("speedup") or {}}
    for kind in sorted(kinds):
        logs = [math.log(r["speedup"][kind]) for r in accepted if kind in (r.get("speedup") or {})]
        print(
            f"geometric mean of the speedup against {kind}: {math.exp(sum(logs) / len(logs)):.3f} ({len(logs)} timed)"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", help="problem files and folders")
    parser.add_argument("--binary", default=os.environ.get("BINARY", str(ROOT / "target/release/tilewright")))
    parser.add_argument("--target", default="cpu", help="as for `tilewright verify`")
    parser.add_argument("--baseline", action="append", default=[], help="eager, compile, max-autotune; on a GPU only")
    parser.add_argument("--profile", action="append", default=[])
    parser.add_argument("--variant", action="append", default=[], help="names of variants, or all [default: default]")
    parser.add_argument("--jobs", type=int, default=2, help="verified at the same time")
    parser.add_argument("--timeout", type=int, default=300, help="seconds for one verdict")
    parser.add_argument("--untimed", action="store_true", help="time nothing")
    parser.add_argument("--seconds", type=float, default=1e9, help="start no verification after this time")
    parser.add_argument("--keep", help="keep the candidates in this folder")
    parser.add_argument("--json", help="write rows and verdicts to this file")
    options = parser.parse_args()
    folder = pathlib.Path(options.keep or tempfile.mkdtemp(prefix="teach-"))
    folder.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + options.seconds
    rows: dict[str, dict[str, Any]] = {}
    todo = problems(options.paths)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        waiting = [pool.submit(row_of, path, options, folder, until) for path in todo]
        for done, future in enumerate(concurrent.futures.as_completed(waiting), 1):
            rows |= future.result()
            print(f"\r{done} of {len(todo)}", end="", file=sys.stderr, flush=True)
            if options.json:
                pathlib.Path(options.json).write_text(json.dumps(rows, indent=1))
    print(file=sys.stderr)
    show(rows)
    return 0 if all(row.get("verdict") == "accepted" for row in rows.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
