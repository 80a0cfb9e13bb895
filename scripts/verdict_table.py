#!/usr/bin/env python3
"""Verify every candidate of a suite with the real binary and print a Markdown table of verdicts.

    scripts/verdict_table.py --binary target/release/tilewright problems
    scripts/verdict_table.py --binary target/release/tilewright --corpus DIR     (a folder with labels.csv)

Exit status 1 if a verdict is not the one that its label allows.
"""

from __future__ import annotations

import argparse
import collections
import csv
import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Case:
    problem: Path
    candidate: Path
    label: str
    allowed: str = "accepted"


@dataclass
class Row:
    case: Case
    verdict: dict
    seconds: float

    @property
    def fits(self) -> bool:
        """Whether the verdict is one that the label allows."""
        return self.verdict["verdict"] in self.case.allowed.split("|")


def suite(folder: Path) -> list[Case]:
    """`NAME/problem.py` with `NAME/candidate.py`."""
    return [Case(p, p.with_name("candidate.py"), "honest") for p in sorted(folder.glob("*/problem.py"))]


def corpus(folder: Path, gpu: bool, labels: list[str]) -> list[Case]:
    """Candidates of a labelled corpus; those that need a GPU only where there is one."""
    cases = []
    target = "cuda" if gpu else "cpu"
    with open(folder / "labels.csv", newline="") as file:
        for row in csv.DictReader(file):
            if row["label"] in labels and target in row["targets"].split():
                candidate = folder / row["label"] / f"{row['id']}.py"
                cases.append(Case(folder / row["problem"], candidate, row["label"], row["verdict"]))
    return cases


def verify(case: Case, args: argparse.Namespace) -> Row:
    """One run of the binary."""
    command = [args.binary, "verify", str(case.problem), str(case.candidate), "--json", "--target", args.target]
    # Several on one GPU at the same time would measure one another.
    command += [flag for kind in args.baseline for flag in ("--baseline", kind)] if args.jobs == 1 else ["--untimed"]
    for profile in args.profile:
        command += ["--profile", profile]
    start = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True)
    seconds = time.monotonic() - start
    try:
        verdict = json.loads(done.stdout)
    except json.JSONDecodeError:
        verdict = {"verdict": f"no verdict, exit {done.returncode}", "reasons": [{"message": done.stderr[-300:]}]}
    return Row(case, verdict, seconds)


def print_table(rows: list[Row]) -> None:
    print("| problem | candidate | label | verdict | as labelled | reason | seconds |")
    print("|---|---|---|---|---|---|---|")
    for row in rows:
        reasons = row.verdict.get("reasons") or [{}]
        reason = f"{reasons[0].get('code', '')}: {reasons[0].get('message', '')}" if reasons[0] else ""
        name = row.case.problem.parent.name if row.case.problem.stem == "problem" else row.case.problem.stem
        reason = " ".join(reason.split())[:140].replace("|", "\\|")
        mark = "yes" if row.fits else "**NO**"
        print(
            f"| {name} | {row.case.candidate.stem} | {row.case.label} | {row.verdict['verdict']} | {mark} "
            f"| {reason} | {row.seconds:.1f} |"
        )


def print_times(rows: list[Row]) -> None:
    """Device times, where they were measured."""
    timed = [(row, row.verdict["timing"]) for row in rows if row.verdict.get("timing")]
    if not timed:
        return
    print("\n| problem | device us | warm us | baseline | baseline us | speedup | 95 % | of the limit |")
    print("|---|---|---|---|---|---|---|---|")
    for row, timing in timed:
        limit = f"{timing['limit']['fraction']:.0%}" if timing.get("limit") else ""
        for baseline in timing.get("baselines", []):
            speedup, gaps = baseline["speedup"], "" if baseline["graph"] else " (with gaps)"
            print(
                f"| {row.case.problem.parent.name} | {timing['device_us']['value']:.2f} "
                f"| {timing['warm_us']['value']:.2f} "
                f"| {baseline['baseline']}{gaps} | {baseline['device_us']['value']:.2f} | {speedup['value']:.3f} "
                f"| {speedup['low']:.3f} to {speedup['high']:.3f} | {limit} |"
            )


def print_summary(rows: list[Row]) -> None:
    tally = collections.Counter((row.case.label, row.verdict["verdict"]) for row in rows)
    print()
    for (label, verdict), count in sorted(tally.items()):
        print(f"- {label}: {count} {verdict}")
    stages: dict[str, list[float]] = collections.defaultdict(list)
    for row in rows:
        for stage in row.verdict.get("stages", []):
            stages[stage["stage"]].append(stage["seconds"])
    print()
    print("| stage | median s | max s |")
    print("|---|---|---|")
    for name, values in stages.items():
        values.sort()
        print(f"| {name} | {values[len(values) // 2]:.3f} | {values[-1]:.3f} |")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", nargs="*", type=Path, help="folders with NAME/problem.py and NAME/candidate.py")
    parser.add_argument("--binary", default="target/release/tilewright")
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--label", action="append", help="labels of the corpus to run (default: honest and wrong)")
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--profile", action="append", default=[])
    parser.add_argument("--jobs", type=int, default=1, help="at the same time; candidates are timed only with 1")
    parser.add_argument("--baseline", action="append", default=[], help="as verify's; repeat for several")
    parser.add_argument("--json", type=Path, help="write the verdicts here, one a line")
    args = parser.parse_args()
    cases = [case for folder in args.suite for case in suite(folder)]
    if args.corpus:
        cases += corpus(args.corpus, args.target != "cpu", args.label or ["honest", "wrong"])
    if not cases:
        parser.error("nothing to verify")
    with ThreadPoolExecutor(args.jobs) as pool:
        rows = list(pool.map(lambda case: verify(case, args), cases))
    print_table(rows)
    print_times(rows)
    print_summary(rows)
    if args.json:
        args.json.write_text("".join(json.dumps(row.verdict) + "\n" for row in rows))
    return 0 if all(row.fits for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
